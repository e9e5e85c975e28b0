/*
 * What every shader shares: the record of its call, groups, operands of any type, the flag. docs/vulkan.md ("Adding a
 * shader") says how to use it; vulkan/program/record.h is the other side.
 */
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float64 : require

#include "precision/arithmetic.h"
#include "vulkan/shaders/half.glsl"

/* Invocations of a work group; a shader that wants another number says so before it includes this file. */
#ifndef HS_GROUP
#define HS_GROUP 256
#endif
layout(local_size_x = HS_GROUP) in;

/* Slots of operands: inputs, then outputs. */
#define HS_INPUTS 5
#define HS_SLOTS 9
#define HS_IN(i) (i)
#define HS_OUT(i) (HS_INPUTS + (i))

/* A pipeline is made for one precision, one set of types, one set of options (hs_vk_variant). */
layout(constant_id = 0) const uint hs_precision = 0; /* HS_TYPE_F64, HS_TYPE_FP16, HS_TYPE_BF16 */
layout(constant_id = 1) const uint hs_types = 0;     /* two bits for each slot: HS_TYPE_F64, HS_TYPE_FP16, HS_TYPE_BF16 */
layout(constant_id = 2) const uint hs_options = 0;   /* what the operation says */

struct hs_operand {
    uint64_t address;
    uint64_t pitch; /* bytes from row to row */
    uint rows, columns;
};

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer hs_record {
    uint64_t flag, scratch;
    double epsilon, factor;
    uint sequences, heads, kv_heads, head_width;
    uint flag_mask, padding;
    hs_operand operands[HS_SLOTS];
};

layout(buffer_reference, std430, buffer_reference_align = 8) buffer hs_doubles { double at[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer hs_halves { uint16_t at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer hs_integers { int at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer hs_words { uint at[]; };

layout(push_constant, std430) uniform hs_push {
    hs_record record;
    uint first_group;
} hs_call;

/* The number of this work group among those of the call, which may have been dispatched in several parts. */
uint hs_group() {
    return hs_call.first_group + gl_WorkGroupID.x;
}

uint hs_rows(uint slot) {
    return hs_call.record.operands[slot].rows;
}

uint hs_columns(uint slot) {
    return hs_call.record.operands[slot].columns;
}

uint hs_type(uint slot) {
    return (hs_types >> (2u * slot)) & 3u;
}

/* Where a row of an operand begins. */
uint64_t hs_row(uint slot, uint row) {
    return hs_call.record.operands[slot].address + uint64_t(row) * hs_call.record.operands[slot].pitch;
}

/* What the call works with, from its element `first` on. */
hs_doubles hs_scratch(uint64_t first) {
    return hs_doubles(hs_call.record.scratch + 8UL * first);
}

/* An element of a row, as the number that it is. */
double hs_load(uint slot, uint64_t row, uint column) {
    if (hs_type(slot) == HS_TYPE_F64)
        return hs_doubles(row).at[column];
    return hs_half_to_f64(hs_type(slot), uint(hs_halves(row).at[column]));
}

int hs_load_index(uint slot, uint i) {
    return hs_integers(hs_row(slot, 0)).at[i];
}

/* Says that the call has stored, or met inside, an infinity or a NaN. */
void hs_raise() {
    atomicOr(hs_words(hs_call.record.flag).at[0], hs_call.record.flag_mask);
}

/* Stores an element, rounded once to its type. For shaders that raise the flag once for all that they store. */
void hs_write(uint slot, uint64_t row, uint column, double value) {
    if (hs_type(slot) == HS_TYPE_F64)
        hs_doubles(row).at[column] = value;
    else
        hs_halves(row).at[column] = uint16_t(hs_half_from_f64(hs_type(slot), value));
}

/* The same, and raises the flag for what was not finite before. */
void hs_store(uint slot, uint64_t row, uint column, double value) {
    if (!hs_is_finite(value))
        hs_raise();
    hs_write(slot, row, column, value);
}

/* Stores the f32 sum of a product as Q_h of it; the flag is for what that gives. */
void hs_store_product(uint slot, uint64_t row, uint column, float sum) {
    uint bits = hs_half_from_f32(hs_precision, sum);
    if ((bits & hs_half_infinity(hs_precision)) == hs_half_infinity(hs_precision))
        hs_raise();
    if (hs_type(slot) == HS_TYPE_F64)
        hs_doubles(row).at[column] = hs_half_to_f64(hs_precision, bits);
    else
        hs_halves(row).at[column] = uint16_t(bits);
}

/* The f32 operand of a product: an element as a number of the precision's format. */
float hs_load_operand(uint slot, uint64_t row, uint column) {
    if (hs_type(slot) == HS_TYPE_F64)
        return hs_half_to_f32(hs_precision, hs_half_from_f64(hs_precision, hs_doubles(row).at[column]));
    return hs_half_to_f32(hs_precision, uint(hs_halves(row).at[column]));
}

/* An element of an operation that takes each by itself. */
struct hs_element {
    bool there;
    uint row, column;
};

/* The element of this invocation: a group takes as many of one row of `slot` as it has invocations. */
hs_element hs_find_element(uint slot) {
    uint parts = (hs_columns(slot) + HS_GROUP - 1u) / HS_GROUP;
    uint group = hs_group();
    hs_element element;
    element.row = group / parts;
    element.column = group % parts * HS_GROUP + gl_LocalInvocationID.x;
    element.there = element.row < hs_rows(slot) && element.column < hs_columns(slot);
    return element;
}

double hs_get(uint slot, hs_element element) {
    return hs_load(slot, hs_row(slot, element.row), element.column);
}

void hs_put(uint slot, hs_element element, double value) {
    hs_store(slot, hs_row(slot, element.row), element.column, value);
}
