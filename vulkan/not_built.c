/* Stands in for the backend where the build found no Vulkan headers or no glslang. */
#include "vulkan/create.h"

static hstep_status refuse(hstep_error *error) {
    return hs_fail(error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                   "backend vulkan is not built into this version (its build found no Vulkan headers or no glslang); "
                   "choose cpu, cpu-reference or auto");
}

hstep_status hs_vulkan_create(const hs_vulkan_choice *choice, hs_backend **backend, hstep_error *error) {
    (void)choice;
    (void)backend;
    return refuse(error);
}

hstep_status hs_vulkan_list(hstep_device **devices, size_t *count, hstep_error *error) {
    (void)devices;
    (void)count;
    return refuse(error);
}
