/*
 * Moving bytes between host and device, through a few small places that both see. A write returns when its bytes have
 * been copied out of the caller's memory, and takes effect in the order of submission. Everything that crosses the bus
 * is counted.
 */
#ifndef HS_VULKAN_DEVICE_TRANSFER_H
#define HS_VULKAN_DEVICE_TRANSFER_H

#include "vulkan/device/memory.h"

enum { HS_VK_STAGING_SLOTS = 4, HS_VK_STAGING_BYTES = 1 << 20 };

/* One place, and the commands that last used it. */
typedef struct hs_vk_slot {
    VkCommandBuffer commands;
    VkDeviceSize offset;
    uint64_t number; /* on the timeline: free again when that has passed */
} hs_vk_slot;

typedef struct hs_vk_transfer {
    hs_vk_memory staging;
    hs_vk_slot slots[HS_VK_STAGING_SLOTS];
    size_t next;
    uint64_t bytes_up, bytes_down; /* host to device, device to host */
} hs_vk_transfer;

hstep_status hs_vk_transfer_open(hs_vk_device *device, hs_vk_transfer *transfer, hstep_error *error);
void hs_vk_transfer_close(hs_vk_device *device, hs_vk_transfer *transfer);

hstep_status hs_vk_write(hs_vk_device *device, hs_vk_transfer *transfer, const hs_vk_buffer *buffer, size_t offset,
                         const void *data, size_t bytes, hstep_error *error);
hstep_status hs_vk_read(hs_vk_device *device, hs_vk_transfer *transfer, const hs_vk_buffer *buffer, size_t offset,
                        void *data, size_t bytes, hstep_error *error);
hstep_status hs_vk_clear(hs_vk_device *device, hs_vk_transfer *transfer, const hs_vk_buffer *buffer, size_t offset,
                         size_t bytes, hstep_error *error);

#endif
