/* Device memory: few large blocks, out of which buffers are cut. */
#ifndef HS_VULKAN_DEVICE_MEMORY_H
#define HS_VULKAN_DEVICE_MEMORY_H

#include "vulkan/device/device.h"

/* One allocation and the VkBuffer over all of it. */
typedef struct hs_vk_memory {
    VkDeviceMemory memory;
    VkBuffer buffer;
    VkDeviceSize size;
    VkDeviceAddress address;
    void *mapped; /* on the host; NULL in device memory */
} hs_vk_memory;

hstep_status hs_vk_memory_make(hs_vk_device *device, VkDeviceSize size, bool on_host, hs_vk_memory *memory,
                               hstep_error *error);
void hs_vk_memory_free(hs_vk_device *device, hs_vk_memory *memory);

/* A stretch of a block that nobody uses. */
typedef struct hs_vk_gap {
    VkDeviceSize offset, size;
} hs_vk_gap;

/* A block and its gaps, ascending; neighbours are joined. */
typedef struct hs_vk_block {
    hs_vk_memory memory;
    hs_vk_gap *gaps;
    size_t gap_count, gap_room;
    size_t buffers; /* cut out of it */
} hs_vk_block;

typedef struct hs_vk_heap {
    hs_vk_block **blocks;
    size_t count, room;
    VkDeviceSize taken;
} hs_vk_heap;

/* A buffer of the backend. */
typedef struct hs_vk_buffer {
    hs_buffer base;
    hs_vk_block *block;
    VkDeviceSize offset, size; /* in the block; a multiple of HS_VK_ALIGNMENT */
    VkDeviceAddress address;
} hs_vk_buffer;

enum { HS_VK_ALIGNMENT = 256 };

/* Of what value its bytes are is not said. */
hstep_status hs_vk_heap_take(hs_vk_device *device, hs_vk_heap *heap, size_t bytes, hs_vk_buffer *buffer,
                             hstep_error *error);

/* No work that uses the buffer may be on its way. */
void hs_vk_heap_give(hs_vk_device *device, hs_vk_heap *heap, hs_vk_buffer *buffer);

void hs_vk_heap_free(hs_vk_device *device, hs_vk_heap *heap);

#endif
