/* Stands in for the backend where the build found no Vulkan headers or no glslang. */
#include "vulkan/create.h"

hstep_status hs_vulkan_create(const hs_vulkan_choice *choice, hs_backend **backend, hstep_error *error) {
    (void)choice;
    (void)backend;
    return hs_fail(error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                   "backend vulkan is not built into this version (its build found no Vulkan headers or no glslang); "
                   "choose cpu, cpu-reference or auto");
}
