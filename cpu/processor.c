#include "cpu/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* The compilers' own test also asks whether the system saves the registers; not all of them know F16C by name. */
hstep_lever_state hs_detect_avx2(void) {
    unsigned a, b, c, d;
    const int converts = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    return converts && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? HSTEP_LEVER_ACTIVE
                                                                                       : HSTEP_LEVER_ABSENT;
}

hstep_lever_state hs_detect_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? HSTEP_LEVER_ACTIVE
               : HSTEP_LEVER_ABSENT;
}

bool hs_has_avx512bf16(void) {
    unsigned a, b, c, d;
    return hs_detect_avx512() == HSTEP_LEVER_ACTIVE && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1U << 5) != 0;
}

#else

hstep_lever_state hs_detect_avx2(void) { return HSTEP_LEVER_NOT_BUILT; }
hstep_lever_state hs_detect_avx512(void) { return HSTEP_LEVER_NOT_BUILT; }
bool hs_has_avx512bf16(void) { return false; }

#endif
