#include "vulkan/device/memory.h"

#include <stdlib.h>
#include <string.h>

/* Blocks start small, so that a small model takes little, and double. */
static const VkDeviceSize smallest_block = (VkDeviceSize)8 << 20, largest_block = (VkDeviceSize)256 << 20;

/* A kind of memory that has all of `wanted`, or -1. */
static int find_type(const hs_vk_device *device, uint32_t allowed, VkMemoryPropertyFlags wanted) {
    for (uint32_t i = 0; i < device->memory.memoryTypeCount; i++)
        if ((allowed >> i & 1U) && (device->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return (int)i;
    return -1;
}

static int choose_type(const hs_vk_device *device, uint32_t allowed, bool on_host) {
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    if (!on_host)
        return find_type(device, allowed, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    const int cached = find_type(device, allowed, host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    return cached >= 0 ? cached : find_type(device, allowed, host);
}

static hstep_status bind_memory(hs_vk_device *device, hs_vk_memory *memory, bool on_host, hstep_error *error) {
    VkMemoryRequirements needed;
    device->vk.GetBufferMemoryRequirements(device->handle, memory->buffer, &needed);
    const int type = choose_type(device, needed.memoryTypeBits, on_host);
    HS_RETURN_IF(type < 0, error, HSTEP_ERROR_BACKEND_UNAVAILABLE, "the Vulkan device %s has no fitting memory",
                 device->facts.name);
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &flags,
                                       .allocationSize = needed.size,
                                       .memoryTypeIndex = (uint32_t)type};
    HS_FORWARD(hs_vk_check(device, device->vk.AllocateMemory(device->handle, &info, NULL, &memory->memory),
                           "taking device memory", error));
    HS_FORWARD(hs_vk_check(device, device->vk.BindBufferMemory(device->handle, memory->buffer, memory->memory, 0),
                           "binding memory", error));
    const VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                               .buffer = memory->buffer};
    memory->address = device->vk.GetBufferDeviceAddress(device->handle, &address);
    if (!on_host)
        return HSTEP_OK;
    return hs_vk_check(device,
                       device->vk.MapMemory(device->handle, memory->memory, 0, VK_WHOLE_SIZE, 0, &memory->mapped),
                       "mapping memory", error);
}

hstep_status hs_vk_memory_make(hs_vk_device *device, VkDeviceSize size, bool on_host, hs_vk_memory *memory,
                               hstep_error *error) {
    HS_RETURN_IF(size > device->facts.most_memory, error, HSTEP_ERROR_MEMORY,
                 "the Vulkan device %s gives at most %llu bytes at once, and %llu are wanted", device->facts.name,
                 (unsigned long long)device->facts.most_memory, (unsigned long long)size);
    *memory = (hs_vk_memory){.size = size};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = size,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                              VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    hstep_status status = hs_vk_check(device, device->vk.CreateBuffer(device->handle, &info, NULL, &memory->buffer),
                                      "making a buffer", error);
    if (status == HSTEP_OK)
        status = bind_memory(device, memory, on_host, error);
    if (status != HSTEP_OK)
        hs_vk_memory_free(device, memory);
    return status;
}

void hs_vk_memory_free(hs_vk_device *device, hs_vk_memory *memory) {
    device->vk.DestroyBuffer(device->handle, memory->buffer, NULL);
    device->vk.FreeMemory(device->handle, memory->memory, NULL);
    *memory = (hs_vk_memory){0};
}

static void free_block(hs_vk_device *device, hs_vk_block *block) {
    hs_vk_memory_free(device, &block->memory);
    free(block->gaps);
    free(block);
}

/* Makes place for so many gaps. Between n buffers there are at most n + 1, so that giving back cannot fail. */
static bool reserve_gaps(hs_vk_block *block, size_t count) {
    if (count <= block->gap_room)
        return true;
    const size_t room = 2 * count + 8;
    hs_vk_gap *gaps = realloc(block->gaps, room * sizeof *gaps);
    if (!gaps)
        return false;
    block->gaps = gaps;
    block->gap_room = room;
    return true;
}

static bool reserve_blocks(hs_vk_heap *heap) {
    if (heap->count < heap->room)
        return true;
    const size_t room = 2 * heap->room + 8;
    hs_vk_block **blocks = realloc(heap->blocks, room * sizeof *blocks);
    if (!blocks)
        return false;
    heap->blocks = blocks;
    heap->room = room;
    return true;
}

static VkDeviceSize block_size(const hs_vk_heap *heap, VkDeviceSize wanted) {
    VkDeviceSize size = smallest_block;
    for (size_t i = 0; i < heap->count && size < largest_block; i++)
        size *= 2;
    return wanted > size ? wanted : size;
}

/* A new block that is one gap. Where the device has not so much, one of just the size that is wanted. */
static hstep_status add_block(hs_vk_device *device, hs_vk_heap *heap, VkDeviceSize wanted, hstep_error *error) {
    hs_vk_block *block = calloc(1, sizeof *block);
    if (!block || !reserve_gaps(block, 2) || !reserve_blocks(heap)) {
        if (block)
            free(block->gaps);
        free(block);
        return hs_fail_memory(error, "a block of device memory");
    }
    const VkDeviceSize size = block_size(heap, wanted);
    hstep_status status = hs_vk_memory_make(device, size, false, &block->memory, error);
    if (status == HSTEP_ERROR_MEMORY && size > wanted)
        status = hs_vk_memory_make(device, wanted, false, &block->memory, error);
    if (status != HSTEP_OK) {
        free(block->gaps);
        free(block);
        return status;
    }
    block->gaps[0] = (hs_vk_gap){0, block->memory.size};
    block->gap_count = 1;
    heap->blocks[heap->count++] = block;
    return HSTEP_OK;
}

/* Cuts a buffer off the first gap that is large enough. */
static bool cut(hs_vk_block *block, VkDeviceSize size, hs_vk_buffer *buffer) {
    for (size_t i = 0; i < block->gap_count; i++) {
        hs_vk_gap *gap = &block->gaps[i];
        if (gap->size < size)
            continue;
        buffer->block = block;
        buffer->offset = gap->offset;
        buffer->size = size;
        buffer->address = block->memory.address + gap->offset;
        gap->offset += size;
        gap->size -= size;
        if (gap->size == 0)
            memmove(gap, gap + 1, (--block->gap_count - i) * sizeof *gap);
        block->buffers++;
        return true;
    }
    return false;
}

hstep_status hs_vk_heap_take(hs_vk_device *device, hs_vk_heap *heap, size_t bytes, hs_vk_buffer *buffer,
                             hstep_error *error) {
    HS_RETURN_IF(bytes > SIZE_MAX / 2, error, HSTEP_ERROR_MEMORY, "%zu bytes are more than any device has", bytes);
    const VkDeviceSize size = (bytes / HS_VK_ALIGNMENT + 1) * HS_VK_ALIGNMENT;
    for (size_t i = 0; i < heap->count; i++) {
        hs_vk_block *block = heap->blocks[i];
        if (!reserve_gaps(block, block->buffers + 2))
            return hs_fail_memory(error, "a buffer");
        if (cut(block, size, buffer)) {
            heap->taken += size;
            return HSTEP_OK;
        }
    }
    HS_FORWARD(add_block(device, heap, size, error));
    (void)cut(heap->blocks[heap->count - 1], size, buffer);
    heap->taken += size;
    return HSTEP_OK;
}

/* Puts a gap into its place and joins it with its neighbours. */
static void add_gap(hs_vk_block *block, hs_vk_gap gap) {
    size_t i = 0;
    while (i < block->gap_count && block->gaps[i].offset < gap.offset)
        i++;
    memmove(&block->gaps[i + 1], &block->gaps[i], (block->gap_count - i) * sizeof gap);
    block->gaps[i] = gap;
    block->gap_count++;
    for (size_t j = i + 1; j > 0 && j + 1 > i; j--) {
        hs_vk_gap *before = &block->gaps[j - 1], *after = &block->gaps[j];
        if (j >= block->gap_count || before->offset + before->size != after->offset)
            continue;
        before->size += after->size;
        memmove(after, after + 1, (--block->gap_count - j) * sizeof gap);
    }
}

/* A block without buffers goes back to the device. */
static void drop_empty(hs_vk_device *device, hs_vk_heap *heap, hs_vk_block *block) {
    size_t i = 0;
    if (block->buffers > 0)
        return;
    while (heap->blocks[i] != block)
        i++;
    memmove(&heap->blocks[i], &heap->blocks[i + 1], (--heap->count - i) * sizeof(hs_vk_block *));
    free_block(device, block);
}

void hs_vk_heap_give(hs_vk_device *device, hs_vk_heap *heap, hs_vk_buffer *buffer) {
    hs_vk_block *block = buffer->block;
    if (!block)
        return;
    add_gap(block, (hs_vk_gap){buffer->offset, buffer->size});
    block->buffers--;
    heap->taken -= buffer->size;
    *buffer = (hs_vk_buffer){0};
    drop_empty(device, heap, block);
}

void hs_vk_heap_free(hs_vk_device *device, hs_vk_heap *heap) {
    for (size_t i = 0; i < heap->count; i++)
        free_block(device, heap->blocks[i]);
    free(heap->blocks);
    *heap = (hs_vk_heap){0};
}
