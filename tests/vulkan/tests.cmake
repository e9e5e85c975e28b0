# Shaders and the device layer, on the driver that computes on the processor; HALFSTEP_TEST_DEVICE names another device.
# Every program runs three times more: under the validation layer, on a newer driver, and under that one's layer.
set(HALFSTEP_VULKAN_DRIVER ${CMAKE_SOURCE_DIR}/build/vulkan-driver CACHE PATH
    "A folder of tools/vulkan-driver.sh, for tests on a newer driver, which say that they skipped until it is there; empty for none")
set(driver ${CMAKE_SOURCE_DIR}/tools/vulkan-driver.sh)

# Like GLSLANG_VALIDATOR it may be a command with arguments.
find_program(SPIRV_VAL spirv-val)
string(JOIN " " spirv_val ${SPIRV_VAL})
target_compile_definitions(test_vulkan_shaders PRIVATE HS_TEST_SPIRV_VAL="${spirv_val}")

# What the layer must object to.
add_executable(vulkan_faulty vulkan/faulty.c)
target_link_libraries(vulkan_faulty PRIVATE halfstep_test_support)
set_target_properties(vulkan_faulty PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# add_driver_test(NAME LABELS COMMAND...): skipped where the driver or the layer is not there.
function(add_driver_test name labels)
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS "${labels}" TIMEOUT 900
        ENVIRONMENT "OMP_WAIT_POLICY=passive;XDG_CACHE_HOME=${CMAKE_BINARY_DIR}/tests/cache")
endfunction()

# The sanitizers' build leaves this to the others. Shaders are looked at, not run.
if(NOT HALFSTEP_SANITIZE)
    list(TRANSFORM VULKAN_TEST_SOURCES REPLACE "^.*/test_(.*)\\.c$" "\\1" OUTPUT_VARIABLE things)
    list(REMOVE_ITEM things shaders)
    foreach(thing IN LISTS things)
        set(program $<TARGET_FILE:test_vulkan_${thing}>)
        set(validate bash ${CMAKE_CURRENT_SOURCE_DIR}/vulkan/validation.sh $<TARGET_FILE:vulkan_faulty> ${program})
        set(long "")
        if(thing MATCHES "^(operations|runs)$")
            set(long long)
        endif()
        if(HALFSTEP_VULKAN_DRIVER)
            add_driver_test(vulkan_new_${thing} vulkan-new ${run_program} ${driver} ${HALFSTEP_VULKAN_DRIVER}
                --run ${program} --jobs=1)
        endif()
        # The gate asks for nothing of Vulkan that the tests of products do not.
        if(thing MATCHES "gate$")
            continue()
        endif()
        add_driver_test(vulkan_validation_${thing} "${long}" ${validate})
        if(HALFSTEP_VULKAN_DRIVER)
            add_driver_test(vulkan_new_validation_${thing} "vulkan-new;${long}"
                ${CMAKE_COMMAND} -E env VULKAN_DRIVER=${HALFSTEP_VULKAN_DRIVER} ${validate})
        endif()
    endforeach()
endif()

# Whole runs that are killed, and such whose device is lost, by a layer.
if(NOT HALFSTEP_SANITIZE)
    set(layers ${CMAKE_BINARY_DIR}/tests/layers)
    add_library(vulkan_losing_layer MODULE vulkan/losing_layer.c)
    target_link_libraries(vulkan_losing_layer PRIVATE halfstep_options)
    target_include_directories(vulkan_losing_layer SYSTEM PRIVATE ${VULKAN_INCLUDE_DIR})
    set_target_properties(vulkan_losing_layer PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${layers})
    file(GENERATE OUTPUT ${layers}/losing.json CONTENT "{\"file_format_version\": \"1.1.2\", \"layer\": {
        \"name\": \"VK_LAYER_HALFSTEP_losing\", \"type\": \"GLOBAL\", \"api_version\": \"1.2.0\",
        \"library_path\": \"$<TARGET_FILE:vulkan_losing_layer>\", \"implementation_version\": \"1\",
        \"description\": \"Loses the device\"}}\n")
    set(stops python3 -B ${CMAKE_CURRENT_SOURCE_DIR}/runs/vulkan.py)
    add_driver_test(vulkan_stops long ${stops} $<TARGET_FILE:trainer> ${layers})
    if(HALFSTEP_VULKAN_DRIVER)
        # The trainer as one program, which a test can kill.
        file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/tests/new_driver/trainer
            CONTENT "#!/bin/sh\nexec ${driver} ${HALFSTEP_VULKAN_DRIVER} --run $<TARGET_FILE:trainer> \"$@\"\n"
            FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
        add_driver_test(vulkan_new_stops "vulkan-new;long" ${stops} ${CMAKE_BINARY_DIR}/tests/new_driver/trainer ${layers})
    endif()
endif()

# A whole gate takes a minute on the older driver. The sanitizers see the same functions with the levers of the CPU.
set_tests_properties(vulkan_gate vulkan_cooperative_gate PROPERTIES LABELS long TIMEOUT 900)
if(HALFSTEP_SANITIZE)
    set_tests_properties(vulkan_gate vulkan_cooperative_gate PROPERTIES DISABLED ON)
endif()
# Where lavapipe computes in vectors of 128 bits it has no cooperative matrices; elsewhere the new one has them.
if(TEST vulkan_new_cooperative)
    add_driver_test(vulkan_new_cooperative_narrow vulkan-new ${CMAKE_COMMAND} -E env LP_NATIVE_VECTOR_WIDTH=128
        ${run_program} ${driver} ${HALFSTEP_VULKAN_DRIVER} --run $<TARGET_FILE:test_vulkan_cooperative> --jobs=1
        --filter=cooperative/are_*)
    if(knows_cooperative_fp16)
        set_property(TEST vulkan_new_cooperative APPEND PROPERTY ENVIRONMENT HALFSTEP_TEST_COOPERATIVE=active)
        set_property(TEST vulkan_new_cooperative_narrow APPEND PROPERTY ENVIRONMENT HALFSTEP_TEST_COOPERATIVE=absent)
    else()
        set_property(TEST vulkan_new_cooperative APPEND PROPERTY ENVIRONMENT "HALFSTEP_TEST_COOPERATIVE=not built")
    endif()
endif()

# The script that fetches it, where something is wrong.
add_test(NAME vulkan_driver_script COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/vulkan/driver_script.sh ${driver})
