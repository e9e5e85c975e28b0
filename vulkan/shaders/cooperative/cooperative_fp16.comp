#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define HS_GROUP 128
#include "vulkan/shaders/common.glsl"

/* Products in fp16. */
#define HS_ELEMENT float16_t

#include "vulkan/shaders/cooperative/cooperative.glsl"
