/* The parts of a Vulkan backend. */
#ifndef HS_VULKAN_BACKEND_H
#define HS_VULKAN_BACKEND_H

#include "vulkan/device/transfer.h"
#include "vulkan/levers.h"
#include "vulkan/program/pipelines.h"

struct hs_vk_backend {
    hs_backend base;
    hs_vk_device device;
    hs_vk_heap heap;
    hs_vk_transfer transfer;
    hs_vk_pipelines pipelines;
    hstep_lever levers[HS_VK_LEVERS];
    char reasons[HS_VK_LEVERS][HS_VK_REASON];
    bool flushes;                  /* the probe found that subnormals of f32 or f64 count as zero */
    uint64_t dispatches, barriers; /* submitted so far */
    size_t held;                   /* bytes of buffers and of what programs work with */
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE + 4];
};

/* A buffer for the backend itself, zero-filled and counted as held. hs_vk_drop waits for work on its way. */
hstep_status hs_vk_take(hs_vk_backend *backend, size_t bytes, hs_vk_buffer *buffer, hstep_error *error);
void hs_vk_drop(hs_vk_backend *backend, hs_vk_buffer *buffer);

#endif
