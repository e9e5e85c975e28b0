/*
 * Breaks the rules that validation.sh relies on the layer to watch: it writes the same memory twice without a barrier
 * between, and never frees it. Where the layer has nothing to say about this, its silence elsewhere means nothing.
 */
#include <stdio.h>

#include "vulkan/device/memory.h"

static hstep_status fill_twice(hs_vk_device *device, const hs_vk_memory *memory, hstep_error *error) {
    VkCommandBuffer commands;
    HS_FORWARD(hs_vk_commands_make(device, &commands, error));
    HS_FORWARD(hs_vk_commands_begin(device, commands, false, error));
    device->vk.CmdFillBuffer(commands, memory->buffer, 0, 64, 1);
    device->vk.CmdFillBuffer(commands, memory->buffer, 32, 64, 2);
    HS_FORWARD(hs_vk_commands_end(device, commands, error));
    HS_FORWARD(hs_vk_submit(device, commands, error));
    HS_FORWARD(hs_vk_wait(device, device->submitted, error));
    hs_vk_commands_free(device, commands);
    return HSTEP_OK;
}

int main(void) {
    const hs_vulkan_choice choice = {.device = "llvmpipe"};
    hs_vk_device device;
    hs_vk_memory memory;
    hstep_error error = {0};
    hstep_status status = hs_vk_device_open(&device, &choice, &error);
    if (status == HSTEP_OK) {
        status = hs_vk_memory_make(&device, 4096, false, &memory, &error);
        if (status == HSTEP_OK)
            status = fill_twice(&device, &memory, &error);
        hs_vk_device_close(&device);
    }
    if (status != HSTEP_OK)
        printf("%s\n", error.message);
    return status != HSTEP_OK;
}
