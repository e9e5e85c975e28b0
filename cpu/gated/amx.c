#define _GNU_SOURCE /* syscall */

#include "cpu/gated/amx.h"

#include <stdio.h>

#include "cpu/processor.h"

#if defined(HS_BUILT_AMX) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system's numbers for a process that asks for a part of the processor's state, and for that part. */
enum { REQUEST_STATE = 0x1023, TILE_DATA = 18, TILE_CONFIGURATION = 17 };

static bool processor_has_it(void) {
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    return hs_detect_avx512() == HSTEP_LEVER_ACTIVE && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) != 0 &&
           (d & AMX_TILE) != 0;
}

/* Called where the processor has AVX-512, and with it xgetbv. */
static bool system_saves_it(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    const uint32_t parts = 1U << TILE_CONFIGURATION | 1U << TILE_DATA;
    return (low & parts) == parts;
}

/* The tiles are large, so that the system gives them to processes that ask only: for all their threads, and as often as
 * they like. */
static bool system_permits_it(void) { return syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0; }

hstep_lever_state hs_detect_amx(void) {
    return processor_has_it() && system_saves_it() && system_permits_it() ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_ABSENT;
}

#else

hstep_lever_state hs_detect_amx(void) { return HSTEP_LEVER_NOT_BUILT; }

#endif

/* The key of a kept verdict has the processor and the build beside it. */
void hs_amx_describe(hs_lever_findings *findings) {
    (void)snprintf(findings->identity, sizeof findings->identity, "AMX tiles, 32 x 32");
}
