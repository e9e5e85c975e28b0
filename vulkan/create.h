/*
 * A Vulkan device as a backend: the bits of the CPU reference where the device keeps IEEE arithmetic (docs/vulkan.md).
 * Vulkan is loaded when it is asked for; a program that never asks runs on machines without it.
 */
#ifndef HS_VULKAN_CREATE_H
#define HS_VULKAN_CREATE_H

#include "engine/backend.h"

/* Which device: as few words as people say. */
typedef struct hs_vulkan_choice {
    const char *device; /* a number in the system's order, or a part of a name; NULL: the best one that serves */
    bool automatic;     /* nobody asked for it: only a real GPU that keeps all of the reference's bits will do */
} hs_vulkan_choice;

/*
 * HSTEP_ERROR_BACKEND_UNAVAILABLE, with the reason, where this build has no Vulkan, the system has none, no device fits
 * the choice, or the device lacks what the shaders need (64-bit floats foremost).
 */
hstep_status hs_vulkan_create(const hs_vulkan_choice *choice, hs_backend **backend, hstep_error *error);

/* All devices; the list is from malloc. HSTEP_ERROR_BACKEND_UNAVAILABLE where there is no Vulkan. */
hstep_status hs_vulkan_list(hstep_device **devices, size_t *count, hstep_error *error);

#endif
