#include "precision/environment.h"

#include <float.h>
#include <stdbool.h>

#ifdef __FAST_MATH__
#error "halfstep's bits do not survive -ffast-math"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "f32 and f64 operations must round to their own type");

/* Volatile, so that the processor computes this now and not the compiler before. */
static bool keeps_subnormals(void) {
    volatile float smallest = FLT_MIN, half = 0.5F;
    volatile double smallest64 = DBL_MIN, half64 = 0.5;
    volatile float result = smallest * half, operand = result + result;
    volatile double result64 = smallest64 * half64, operand64 = result64 + result64;
    return result > 0 && operand >= FLT_MIN && result64 > 0 && operand64 >= DBL_MIN;
}

/* In each other mode one of these four sums rounds away from nearest. */
static bool rounds_to_nearest(void) {
    volatile double one = 1.0, little = 0x1p-60;
    volatile float one32 = 1.0F, little32 = 0x1p-30F;
    volatile double up = one + little, down = -one - little;
    volatile float up32 = one32 + little32, down32 = -one32 - little32;
    volatile double toward_zero = one - little;
    return up <= 1.0 && down >= -1.0 && up32 <= 1.0F && down32 >= -1.0F && toward_zero >= 1.0;
}

const char *hs_environment_refusal(void) {
    if (!keeps_subnormals())
        return "this thread flushes subnormal numbers to zero; switch that off (FTZ and DAZ in MXCSR) before";
    if (!rounds_to_nearest())
        return "this thread does not round to nearest; call fesetround(FE_TONEAREST) before";
    return 0;
}
