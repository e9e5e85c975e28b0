# Compiler options of the project's own code, in one place. The numeric contract needs -ffp-contract=off everywhere;
# -fno-math-errno and -fno-trapping-math change no result, they let square roots and selections be vectorised.
add_library(halfstep_options INTERFACE)
target_compile_options(halfstep_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_compile_definitions(halfstep_options INTERFACE _POSIX_C_SOURCE=200809L)
if(HALFSTEP_WERROR)
    target_compile_options(halfstep_options INTERFACE -Werror)
endif()
# gcc's OpenMP tells ThreadSanitizer nothing of its barriers; clang's does, through the tool archer that comes with it.
if(HALFSTEP_SANITIZE STREQUAL "thread")
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "HALFSTEP_SANITIZE=thread needs clang and its OpenMP: -DCMAKE_C_COMPILER=clang")
    endif()
    target_compile_options(halfstep_options INTERFACE -fsanitize=thread)
    target_link_options(halfstep_options INTERFACE -fsanitize=thread)
elseif(HALFSTEP_SANITIZE)
    target_compile_options(halfstep_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined)
    target_link_options(halfstep_options INTERFACE -fsanitize=address,undefined)
endif()
