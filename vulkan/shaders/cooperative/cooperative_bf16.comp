#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_bfloat16 : require
#define HS_GROUP 128
#include "vulkan/shaders/common.glsl"

/* Products in bf16. */
#define HS_ELEMENT bfloat16_t

#include "vulkan/shaders/cooperative/cooperative.glsl"
