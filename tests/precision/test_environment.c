/* A thread that flushes subnormals or rounds another way is noticed, and a context is refused there. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <halfstep/halfstep.h>
#include <string.h>
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
        hstep_context *context = NULL;
        hstep_error error = {0};
        _mm_setcsr(usual | bits[i]);
        const char *refusal = hs_environment_refusal();
        const hstep_status status = hstep_context_create(NULL, &context, &error);
        _mm_setcsr(usual);
        cr_expect_not_null(refusal, "case %zu", i);
        cr_expect_eq(status, HSTEP_ERROR_BACKEND_UNAVAILABLE);
        cr_expect(strstr(error.message, "subnormal") != NULL);
        cr_expect_null(context);
    }
}
#endif
