/*
 * Whether a device keeps the processor's bits: Vulkan promises neither a correctly rounded division nor square root,
 * nor that subnormals survive, and drivers differ. So the operations that the mirror is made of are tried when a device
 * is opened.
 */
#ifndef HS_VULKAN_PROBE_H
#define HS_VULKAN_PROBE_H

#include "vulkan/backend.h"

enum { HS_VK_PROBE_CASES = 4096, HS_VK_PROBE_OPERATIONS = 5, HS_VK_PROBE_OPERANDS = 3 };

typedef enum hs_vk_verdict {
    HS_VK_MIRROR,                    /* the processor's bits */
    HS_VK_MIRROR_WITHOUT_SUBNORMALS, /* the same, but where a subnormal is read or made */
    HS_VK_MIRROR_OFF
} hs_vk_verdict;

/* Numbers in and results out. */
typedef struct hs_vk_probe {
    double given[HS_VK_PROBE_CASES][HS_VK_PROBE_OPERANDS];
    float given_f32[HS_VK_PROBE_CASES][HS_VK_PROBE_OPERANDS];
    double found[HS_VK_PROBE_CASES][HS_VK_PROBE_OPERATIONS];
    float found_f32[HS_VK_PROBE_CASES][HS_VK_PROBE_OPERATIONS];
} hs_vk_probe;

/* Sets the operands, and the results as the processor has them. */
void hs_vk_probe_prepare(hs_vk_probe *probe);

/* Judges results against those of the processor; `text` says what was found. */
hs_vk_verdict hs_vk_probe_judge(const hs_vk_probe *probe, const hs_vk_probe *processor, char *text, size_t size);

/* Tries the device. */
hstep_status hs_vk_probe_run(hs_vk_backend *backend, hs_vk_verdict *verdict, char *text, size_t size,
                             hstep_error *error);

#endif
