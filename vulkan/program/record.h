/* What a shader is told of its call; vulkan/shaders/common.glsl is the other side. */
#ifndef HS_VULKAN_PROGRAM_RECORD_H
#define HS_VULKAN_PROGRAM_RECORD_H

#include <stddef.h>
#include <stdint.h>

/* Slots of operands: inputs, then outputs from HS_VK_INPUTS on. */
enum { HS_VK_INPUTS = 5, HS_VK_SLOTS = 9 };

typedef struct hs_vk_operand {
    uint64_t address;
    uint64_t pitch; /* bytes from row to row */
    uint32_t rows, columns;
} hs_vk_operand;

/* In device memory, one for each call of a program. */
typedef struct hs_vk_record {
    uint64_t flag;    /* address of the word that the call's flag stands in */
    uint64_t scratch; /* address of what the call works with, or 0 */
    double epsilon, factor;
    uint32_t sequences, heads, kv_heads, head_width;
    uint32_t flag_mask, padding; /* the call's bit of the word */
    hs_vk_operand operands[HS_VK_SLOTS];
} hs_vk_record;

/* All that changes from dispatch to dispatch. */
typedef struct hs_vk_push {
    uint64_t record;
    uint32_t first_group;
} hs_vk_push;

/* 4 bytes of padding at the end of the struct need not be pushed. */
enum { HS_VK_PUSH_BYTES = offsetof(hs_vk_push, first_group) + sizeof(uint32_t) };

#endif
