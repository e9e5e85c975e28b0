# The Vulkan backend: its C files, and every NAME.comp in vulkan/shaders and its folders as SPIR-V in a C array. Vulkan
# itself is loaded at run time; building needs its headers and glslang, and without them the backend reports that it was
# not built.
option(HALFSTEP_VULKAN "Build the Vulkan backend (needs Vulkan headers and glslangValidator)" ON)
find_path(VULKAN_INCLUDE_DIR vulkan/vulkan.h)
# May be a command with arguments, as a list: a newer glslang that another program starts.
find_program(GLSLANG_VALIDATOR glslangValidator)

# hs_knows_extension(RESULT NAME): whether glslang knows an extension of the shading language.
function(hs_knows_extension result name)
    set(source ${CMAKE_BINARY_DIR}/vulkan/trials/${name}.comp)
    file(WRITE ${source} "#version 460\n#extension ${name} : require\nvoid main() {}\n")
    execute_process(COMMAND ${GLSLANG_VALIDATOR} --target-env vulkan1.2 -o ${source}.spv ${source}
        RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
        set(${result} ON PARENT_SCOPE)
    else()
        set(${result} OFF PARENT_SCOPE)
        message(STATUS "glslang does not know ${name}: levers that need it are not built")
    endif()
endfunction()

if(HALFSTEP_VULKAN AND VULKAN_INCLUDE_DIR AND GLSLANG_VALIDATOR)
    set(HALFSTEP_BUILDS_VULKAN ON)
    file(GLOB vulkan_sources CONFIGURE_DEPENDS vulkan/*.c vulkan/device/*.c vulkan/program/*.c)
    list(FILTER vulkan_sources EXCLUDE REGEX "/not_built\\.c$")
    file(GLOB vulkan_shaders CONFIGURE_DEPENDS vulkan/shaders/*.comp vulkan/shaders/*/*.comp)
    # What shaders include: a change of any of it compiles them all again.
    file(GLOB vulkan_includes CONFIGURE_DEPENDS vulkan/shaders/*.glsl vulkan/shaders/*/*.glsl)
    set(vulkan_folder ${CMAKE_BINARY_DIR}/vulkan)
    set(vulkan_list "")
    set(vulkan_table "#include \"vulkan/program/pipelines.h\"\n\n")
    set(vulkan_rows "")
    # Shaders for which glslang may be too old, with the extension that it has to know: without it they are empty, and
    # their levers report "not built".
    hs_knows_extension(knows_cooperative_fp16 GL_KHR_cooperative_matrix)
    hs_knows_extension(knows_cooperative_bf16 GL_EXT_bfloat16)
    foreach(shader IN LISTS vulkan_shaders)
        get_filename_component(name ${shader} NAME_WE)
        string(APPEND vulkan_list "HS_VK_SHADER(${name})\n")
        if(DEFINED knows_${name} AND NOT knows_${name})
            string(APPEND vulkan_rows "    {\"${name}\", NULL, 0},\n")
            continue()
        endif()
        string(APPEND vulkan_table "static const uint32_t code_${name}[] = {\n#include \"${name}.inc\"\n};\n")
        string(APPEND vulkan_rows "    {\"${name}\", code_${name}, sizeof code_${name} / sizeof *code_${name}},\n")
        set(binary ${vulkan_folder}/${name}.spv)
        set(words ${vulkan_folder}/${name}.inc)
        add_custom_command(OUTPUT ${words} BYPRODUCTS ${binary}
            COMMAND ${GLSLANG_VALIDATOR} --quiet --target-env vulkan1.2 -I${CMAKE_SOURCE_DIR} -o ${binary} ${shader}
            COMMAND ${CMAKE_COMMAND} -DBINARY=${binary} -DWORDS=${words} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
            DEPENDS ${shader} ${vulkan_includes} ${CMAKE_SOURCE_DIR}/precision/arithmetic.h
                ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
            COMMENT "Compiling shader ${name}" VERBATIM)
        list(APPEND vulkan_words ${words})
    endforeach()
    string(APPEND vulkan_table "\nconst hs_vk_code hs_vk_shaders[HS_VK_SHADER_COUNT] = {\n${vulkan_rows}};\n")
    file(CONFIGURE OUTPUT ${vulkan_folder}/vulkan_shaders.h CONTENT "${vulkan_list}" @ONLY)
    file(CONFIGURE OUTPUT ${vulkan_folder}/shaders.c CONTENT "${vulkan_table}" @ONLY)
    set_source_files_properties(${vulkan_folder}/shaders.c PROPERTIES OBJECT_DEPENDS "${vulkan_words}")
    list(APPEND vulkan_sources ${vulkan_folder}/shaders.c)
else()
    set(HALFSTEP_BUILDS_VULKAN OFF)
    set(vulkan_sources vulkan/not_built.c)
endif()

add_library(halfstep_vulkan OBJECT ${vulkan_sources})
target_include_directories(halfstep_vulkan PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/engine/include)
target_link_libraries(halfstep_vulkan PRIVATE halfstep_options)
if(HALFSTEP_BUILDS_VULKAN)
    target_include_directories(halfstep_vulkan PRIVATE ${vulkan_folder})
    target_include_directories(halfstep_vulkan SYSTEM PRIVATE ${VULKAN_INCLUDE_DIR})
endif()
list(APPEND HALFSTEP_ALL_OBJECTS $<TARGET_OBJECTS:halfstep_vulkan>)
