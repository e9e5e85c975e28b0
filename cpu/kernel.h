/* What a CPU kernel is, and the table that chooses one. */
#ifndef HS_CPU_KERNEL_H
#define HS_CPU_KERNEL_H

#include "engine/backend.h"

/* What matrix products are made of in one precision on one instruction set (cpu/exact/product/kit.h). */
typedef struct hs_kit hs_kit;

/* The kits of one instruction set, by precision; NULL in those that it has none for. */
typedef const hs_kit *const hs_kits[HSTEP_PRECISION_BF16 + 1];

/* What a kernel gets beside its call. */
typedef struct hs_kernel_run {
    unsigned threads;
    const hs_kit *kit; /* of the call's precision, for kernels whose row in the table has kits */
    void *scratch;     /* of the size that the kernel asked for, aligned to 64 bytes */
    bool nonfinite;    /* the kernel sets it when it stores a nonfinite value in an output or a part */
    hs_fault *fault;   /* reference kernels note nonfinite parts here (hs_fault_note); NULL elsewhere */
} hs_kernel_run;

typedef void hs_kernel(const hs_call *call, hs_kernel_run *run);

/* Bytes of scratch that a kernel needs for a call. Of the run, threads and kit are there. */
typedef size_t hs_kernel_scratch(const hs_call *call, const hs_kernel_run *run);

/* One way to compute one operation. The first row whose lever is active serves. */
typedef struct hs_kernel_entry {
    hs_operation operation;
    size_t lever; /* index into the tier's levers */
    hs_kernel *kernel;
    hs_kernel_scratch *scratch; /* NULL for none */
    hs_kits *kits;              /* the row serves the precisions of these; NULL: it needs none */
} hs_kernel_entry;

/* A lever, and how to find out about it. */
typedef struct hs_cpu_lever {
    const char *name;
    bool exact;
    hstep_lever_state (*detect)(void); /* ACTIVE, ABSENT or NOT_BUILT; NULL: always there, the fallback */
    const char *active, *missing;      /* the reason for the state */

    /* Whether a call can be theirs; NULL: any can. An operand whose type is not said is f64, shapes may be missing. */
    bool (*accepts)(const hs_call *call);

    /* Of gated levers: the one precision that they serve; whether subnormal operands count as zero; why one cannot be
       had on so many threads (asked before it is detected; NULL or an answer of NULL: it can); and what is to be found
       out about one that is there. */
    hstep_precision precision;
    bool flushes_subnormals;
    const char *(*refusal)(unsigned threads);
    void (*describe)(hs_lever_findings *findings);
} hs_cpu_lever;

enum { HS_CPU_MAX_LEVERS = 16 };

/* A tier: its name, its levers, its kernels. */
typedef struct hs_cpu_tier {
    const char *name;
    bool locates;               /* whether kernels note faults (the reference) */
    const hs_cpu_lever *levers; /* at most HS_CPU_MAX_LEVERS */
    size_t lever_count;
    size_t compact; /* the lever without which kernels get no operands of 16 bits; lever_count: there is none */
    const hs_kernel_entry *entries;
    size_t entry_count;
} hs_cpu_tier;

extern const hs_cpu_tier hs_cpu_reference_tier;
extern const hs_cpu_tier hs_cpu_exact_tier;

/* A backend of any tier, which must outlive it; hs_cpu_create and hs_cpu_reference_create are made of it. */
hstep_status hs_cpu_create_tier(const hs_cpu_tier *tier, unsigned threads, hs_backend **backend, hstep_error *error);

static inline const double *hs_in(const hs_call *call, unsigned i) {
    return (const double *)(const void *)(call->inputs[i].buffer->data + call->inputs[i].offset);
}

static inline const int32_t *hs_in_i32(const hs_call *call, unsigned i) {
    return (const int32_t *)(const void *)(call->inputs[i].buffer->data + call->inputs[i].offset);
}

static inline double *hs_out(const hs_call *call, unsigned i) {
    return (double *)(void *)(call->outputs[i].buffer->data + call->outputs[i].offset);
}

/* Elements of the last dimension, and how many rows of them there are. */
static inline size_t hs_columns(const hs_view *view) { return view->rank ? view->dims[view->rank - 1] : 1; }

static inline size_t hs_rows(const hs_view *view) {
    size_t count = 1;
    for (uint32_t i = 0; i + 1 < view->rank; i++)
        count *= view->dims[i];
    return count;
}

#endif
