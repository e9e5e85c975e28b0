/* What the numbers of a tensor are like for a product that reads them. */
#include <math.h>

#include "cpu/reference/reference.h"
#include "precision/format.h"

static void count_rounding(hstep_precision precision, double value, double *y) {
    const double rounded = fabs(hs_precision_round(precision, value));
    y[HS_MEASURE_TO_ZERO] += rounded == 0 && value != 0 ? 1 : 0;
    y[HS_MEASURE_TO_SUBNORMAL] += rounded > 0 && rounded < hs_precision_smallest_normal(precision) ? 1 : 0;
    y[HS_MEASURE_TO_INFINITY] += isinf(rounded) ? 1 : 0;
}

void hs_reference_measure(const hs_call *call, hs_kernel_run *run) {
    (void)run;
    const double *x = hs_in(call, 0);
    double *y = hs_out(call, 0);
    for (size_t i = 0; i < HS_MEASURES; i++)
        y[i] = 0;
    for (size_t i = 0; i < hs_view_elements(&call->inputs[0]); i++) {
        if (!isfinite(x[i])) {
            y[HS_MEASURE_NONFINITE] += 1;
            continue;
        }
        if (fabs(x[i]) > y[HS_MEASURE_LARGEST])
            y[HS_MEASURE_LARGEST] = fabs(x[i]);
        if (call->precision != HSTEP_PRECISION_F64)
            count_rounding(call->precision, x[i], y);
    }
}
