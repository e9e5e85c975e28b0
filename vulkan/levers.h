/* The levers of a device: the mirror, and gated kernels for products. */
#ifndef HS_VULKAN_LEVERS_H
#define HS_VULKAN_LEVERS_H

#include "engine/backend.h"
#include "vulkan/program/pipelines.h"

typedef struct hs_vk_backend hs_vk_backend;

enum { HS_VK_MIRROR_LEVER, HS_VK_COOPERATIVE_FP16, HS_VK_COOPERATIVE_BF16, HS_VK_FUSED_FP16, HS_VK_LEVERS };

/* Room for the reason of a state. */
enum { HS_VK_REASON = 512 };

/* The table of a new backend, whose device was found to be a mirror: `reason` says how good a one. */
void hs_vk_levers_start(hs_vk_backend *backend, const char *reason);

/* Those of hs_backend_api. */
void hs_vk_lever_facts(const hs_backend *backend, size_t lever, hs_lever_facts *facts);
void hs_vk_lever_find(const hs_backend *backend, size_t lever, hs_lever_findings *findings);
void hs_vk_lever_set(hs_backend *backend, size_t lever, hstep_lever_state state, const char *reason);

/* Whether an active gated lever serves the call, and then what its pipeline is made for. */
bool hs_vk_levers_serve(const hs_vk_backend *backend, const hs_call *call, hs_vk_variant *variant);

#endif
