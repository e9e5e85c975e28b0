#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/attention/keys.glsl"
