/* A thread that flushes subnormals or rounds another way is noticed. */
#include <criterion/criterion.h>
#include <fenv.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "precision/environment.h"

Test(environment, ordinary_threads_pass) { cr_expect_null(hs_environment_refusal()); }

Test(environment, other_roundings_are_refused) {
    const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < 3; i++) {
        fesetround(modes[i]);
        const char *refusal = hs_environment_refusal();
        fesetround(FE_TONEAREST);
        cr_expect_not_null(refusal, "mode %zu", i);
    }
}

#if defined(__x86_64__)
Test(environment, flushed_subnormals_are_refused) {
    const unsigned usual = _mm_getcsr(), bits[] = {0x8000, 0x0040, 0x8040};
    for (size_t i = 0; i < 3; i++) {
        _mm_setcsr(usual | bits[i]);
        const char *refusal = hs_environment_refusal();
        _mm_setcsr(usual);
        cr_expect_not_null(refusal, "case %zu", i);
    }
}
#endif
