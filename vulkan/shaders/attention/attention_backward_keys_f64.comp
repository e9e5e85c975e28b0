#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"
#define HS_ALL_F64
#include "vulkan/shaders/attention/keys.glsl"
