#include "trainer/verify/judge.h"

#include <math.h>
#include <string.h>

static double mean_before(const double *losses, size_t end, size_t window) {
    double sum = 0;
    for (size_t i = end - window; i < end; ++i)
        sum += losses[i];
    return sum / (double)window;
}

double hs_relative_gap(double reference, double tested) {
    const double gap = reference == tested ? 0 : fabs(tested - reference) / fabs(reference);
    return isfinite(reference) && isfinite(gap) ? gap : INFINITY;
}

hs_curve_gap hs_curve_gap_of(const double *reference, const double *tested, size_t steps, size_t window) {
    const size_t width = steps < window ? steps : window;
    hs_curve_gap found = {0, 0};
    for (size_t end = width; end <= steps && width > 0; ++end) {
        const double gap = hs_relative_gap(mean_before(reference, end, width), mean_before(tested, end, width));
        if (found.step == 0 || gap > found.largest)
            found = (hs_curve_gap){gap, end};
    }
    return found;
}

uint64_t hs_first_difference(const double *a, const double *b, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0)
            return i + 1;
    return 0;
}

/* A step of the half format above 1, and an eighth of it; f64 has none, and its sums' last bits are far below. */
hs_first_limits hs_first_limits_of(const bool *in_use) {
    const double step = in_use[HSTEP_PRECISION_BF16] ? 0x1p-7 : in_use[HSTEP_PRECISION_FP16] ? 0x1p-10 : 1e-9;
    return (hs_first_limits){step, step / 8};
}
