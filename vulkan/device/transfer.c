#include "vulkan/device/transfer.h"

#include <string.h>

hstep_status hs_vk_transfer_open(hs_vk_device *device, hs_vk_transfer *transfer, hstep_error *error) {
    *transfer = (hs_vk_transfer){0};
    HS_FORWARD(hs_vk_memory_make(device, (VkDeviceSize)HS_VK_STAGING_SLOTS * HS_VK_STAGING_BYTES, true,
                                 &transfer->staging, error));
    for (size_t i = 0; i < HS_VK_STAGING_SLOTS; i++) {
        transfer->slots[i].offset = i * HS_VK_STAGING_BYTES;
        HS_FORWARD(hs_vk_commands_make(device, &transfer->slots[i].commands, error));
    }
    return HSTEP_OK;
}

void hs_vk_transfer_close(hs_vk_device *device, hs_vk_transfer *transfer) {
    for (size_t i = 0; i < HS_VK_STAGING_SLOTS; i++)
        hs_vk_commands_free(device, transfer->slots[i].commands);
    hs_vk_memory_free(device, &transfer->staging);
    *transfer = (hs_vk_transfer){0};
}

/* The slot that was used longest ago, free, and its commands begun. */
static hstep_status begin(hs_vk_device *device, hs_vk_transfer *transfer, hs_vk_slot **slot, hstep_error *error) {
    *slot = &transfer->slots[transfer->next];
    HS_FORWARD(hs_vk_wait(device, (*slot)->number, error));
    HS_FORWARD(hs_vk_commands_begin(device, (*slot)->commands, false, error));
    transfer->next = (transfer->next + 1) % HS_VK_STAGING_SLOTS;
    return HSTEP_OK;
}

static hstep_status submit(hs_vk_device *device, hs_vk_slot *slot, hstep_error *error) {
    HS_FORWARD(hs_vk_commands_end(device, slot->commands, error));
    HS_FORWARD(hs_vk_submit(device, slot->commands, error));
    slot->number = device->submitted;
    return HSTEP_OK;
}

static size_t part(size_t bytes) { return bytes < HS_VK_STAGING_BYTES ? bytes : HS_VK_STAGING_BYTES; }

static unsigned char *host_bytes(const hs_vk_transfer *transfer, const hs_vk_slot *slot) {
    return (unsigned char *)transfer->staging.mapped + slot->offset;
}

hstep_status hs_vk_write(hs_vk_device *device, hs_vk_transfer *transfer, const hs_vk_buffer *buffer, size_t offset,
                         const void *data, size_t bytes, hstep_error *error) {
    const unsigned char *source = data;
    for (size_t done = 0; done < bytes; done += part(bytes - done)) {
        hs_vk_slot *slot;
        HS_FORWARD(begin(device, transfer, &slot, error));
        const VkBufferCopy copy = {slot->offset, buffer->offset + offset + done, part(bytes - done)};
        memcpy(host_bytes(transfer, slot), source + done, part(bytes - done));
        device->vk.CmdCopyBuffer(slot->commands, transfer->staging.buffer, buffer->block->memory.buffer, 1, &copy);
        HS_FORWARD(submit(device, slot, error));
    }
    transfer->bytes_up += bytes;
    return HSTEP_OK;
}

hstep_status hs_vk_read(hs_vk_device *device, hs_vk_transfer *transfer, const hs_vk_buffer *buffer, size_t offset,
                        void *data, size_t bytes, hstep_error *error) {
    unsigned char *target = data;
    for (size_t done = 0; done < bytes; done += part(bytes - done)) {
        hs_vk_slot *slot;
        HS_FORWARD(begin(device, transfer, &slot, error));
        const VkBufferCopy copy = {buffer->offset + offset + done, slot->offset, part(bytes - done)};
        device->vk.CmdCopyBuffer(slot->commands, buffer->block->memory.buffer, transfer->staging.buffer, 1, &copy);
        hs_vk_barrier_to_host(device, slot->commands);
        HS_FORWARD(submit(device, slot, error));
        HS_FORWARD(hs_vk_wait(device, slot->number, error));
        memcpy(target + done, host_bytes(transfer, slot), part(bytes - done));
    }
    transfer->bytes_down += bytes;
    return HSTEP_OK;
}

/* Whole words are filled on the device; what stands before and behind them is written. */
hstep_status hs_vk_clear(hs_vk_device *device, hs_vk_transfer *transfer, const hs_vk_buffer *buffer, size_t offset,
                         size_t bytes, hstep_error *error) {
    static const unsigned char zeros[2 * sizeof(uint32_t)] = {0};
    const size_t first = (offset + 3) / 4 * 4, end = (offset + bytes) / 4 * 4;
    if (end <= first)
        return hs_vk_write(device, transfer, buffer, offset, zeros, bytes, error);
    HS_FORWARD(hs_vk_write(device, transfer, buffer, offset, zeros, first - offset, error));
    HS_FORWARD(hs_vk_write(device, transfer, buffer, end, zeros, offset + bytes - end, error));
    hs_vk_slot *slot;
    HS_FORWARD(begin(device, transfer, &slot, error));
    device->vk.CmdFillBuffer(slot->commands, buffer->block->memory.buffer, buffer->offset + first, end - first, 0);
    return submit(device, slot, error);
}
