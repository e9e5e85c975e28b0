/*
 * What the files of the backend share: buffers (backend.c), levers and which kernel serves a call (levers.c), and
 * programs (programs.c).
 */
#ifndef HS_CPU_BACKEND_H
#define HS_CPU_BACKEND_H

#include "cpu/kernel.h"

enum { HS_CPU_REASON = 512 };

typedef struct hs_cpu_backend {
    hs_backend base;
    hs_backend_api api;
    const hs_cpu_tier *tier;
    hstep_lever levers[HS_CPU_MAX_LEVERS];
    char reasons[HS_CPU_MAX_LEVERS][HS_CPU_REASON]; /* of levers that were set from outside */
    bool left_out[HS_CPU_MAX_LEVERS];               /* exact levers */
    unsigned threads;
    bool one_thread; /* for the time being */
    size_t held;     /* bytes of buffers and scratch */
    void *scratch;   /* for all programs: calls run one after another */
    size_t scratch_bytes;
    hstep_allocator own_allocator;
    const hstep_allocator *allocator; /* the one above, or NULL for the system */
    char device[128];
} hs_cpu_backend;

static inline const hs_cpu_backend *hs_cpu_of(const hs_backend *backend) { return (const hs_cpu_backend *)backend; }

/* Each fills in the functions that its file has. */
void hs_cpu_set_lever_functions(hs_backend_api *api);
void hs_cpu_set_program_functions(hs_backend_api *api, bool locates);

/* The levers of a new backend: exact ones as they are found, gated ones off. */
void hs_cpu_start_levers(hs_cpu_backend *cpu);

/* The row that computes a call, with its operands' types and attributes; without gated ones where `exact_only`. NULL
 * where there is none. */
const hs_kernel_entry *hs_cpu_find_kernel(const hs_cpu_backend *cpu, const hs_call *call, bool exact_only);

/* Whether a gated lever is active. */
bool hs_cpu_gates_anything(const hs_cpu_backend *cpu);

#endif
