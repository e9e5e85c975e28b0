#include "support/flushing.h"

#include <criterion/criterion.h>
#include <stdint.h>

#include "cpu/kernel.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

/* The bits for operands and for results. */
static uint64_t set_flushing(void) {
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040U);
    return before;
}

static void restore(uint64_t before) { _mm_setcsr((unsigned)before); }
#elif defined(__aarch64__)
static uint64_t set_flushing(void) {
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | UINT64_C(1) << 24));
    return before;
}

static void restore(uint64_t before) { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#else
static uint64_t set_flushing(void) {
    cr_assert_fail("no way is known to make this processor flush subnormals");
    return 0;
}

static void restore(uint64_t before) { (void)before; }
#endif

/* The reference's kernel for the operation of a call, which computes between the two. */
static void compute(const hs_call *call, hs_kernel_run *run) {
    const hs_kernel_entry *entry = hs_cpu_reference_tier.entries;
    while (entry->operation != call->operation)
        entry++;
    const uint64_t before = set_flushing();
    entry->kernel(call, run);
    restore(before);
}

/* Each test is a process of its own. */
static hs_kernel_entry entries[HS_OP_COUNT];
static hs_cpu_tier tier;

hs_backend *hs_test_flushing_reference(void) {
    hs_backend *backend = NULL;
    tier = hs_cpu_reference_tier;
    cr_assert_leq(tier.entry_count, HS_OP_COUNT, "operations of the reference have one kernel each");
    for (size_t i = 0; i < tier.entry_count; i++) {
        entries[i] = tier.entries[i];
        entries[i].kernel = compute;
    }
    tier.entries = entries;
    cr_assert_eq(hs_cpu_create_tier(&tier, 1, &backend, NULL), HSTEP_OK);
    return backend;
}
