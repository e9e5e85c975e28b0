/*
 * What a driver made of the shaders, kept in the user's cache directory for each driver and device. A help and nothing
 * more: whatever goes wrong with it, pipelines are made anew.
 */
#ifndef HS_VULKAN_PROGRAM_CACHE_H
#define HS_VULKAN_PROGRAM_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <vulkan/vulkan_core.h>

/* From malloc; NULL where nothing is kept, or what is there was damaged or written by somebody else. */
void *hs_vk_cache_load(const uint8_t uuid[VK_UUID_SIZE], size_t *size);

/* Whole or not at all. */
void hs_vk_cache_save(const uint8_t uuid[VK_UUID_SIZE], const void *data, size_t size);

#endif
