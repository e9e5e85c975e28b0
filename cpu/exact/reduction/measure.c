/* What the numbers of a tensor are like for a product that reads them, by comparing magnitudes alone. */
#include <math.h>

#include "cpu/exact/kernels.h"
#include "cpu/exact/view.h"
#include "precision/arithmetic.h"

/* Magnitudes at which nearest-even rounding passes from one outcome to the next. */
typedef struct limits {
    double zero;     /* the largest that becomes 0: half the smallest subnormal, a tie to even */
    double normal;   /* the smallest that becomes normal: halfway below the smallest normal */
    double infinity; /* the smallest that becomes infinite: halfway above the largest */
} limits;

static limits limits_of(hstep_precision precision) {
    switch (precision) {
    case HSTEP_PRECISION_FP16:
        return (limits){0x1p-25, 0x1p-14 - 0x1p-25, 0x1p16 - 0x1p4};
    case HSTEP_PRECISION_BF16:
        return (limits){0x1p-134, 0x1p-126 - 0x1p-134, 0x1p128 - 0x1p119};
    case HSTEP_PRECISION_F64:
        break;
    }
    return (limits){0, 0, INFINITY};
}

typedef struct counts {
    uint64_t to_zero, to_subnormal, to_infinity, nonfinite;
} counts;

/* How many magnitudes lie below each limit, which infinities and NaNs never do; counts are differences of these. */
static double measure_span(const limits *l, size_t count, const double *x, counts *found) {
    const double zero = l->zero, normal = l->normal, infinity = l->infinity;
    int64_t largest = 0; /* the bits, which are ordered as magnitudes are; clang vectorises no maximum of doubles */
    uint64_t none = 0, to_zero = 0, below_normal = 0, below_infinity = 0, finite = 0;
#pragma omp simd reduction(max : largest) reduction(+ : none, to_zero, below_normal, below_infinity, finite)
    for (size_t i = 0; i < count; i++) {
        const double magnitude = fabs(x[i]), known = magnitude < INFINITY ? magnitude : 0;
        const int64_t bits = (int64_t)hs_bits(known);
        largest = bits > largest ? bits : largest;
        none += magnitude == 0;
        to_zero += magnitude <= zero;
        below_normal += magnitude < normal;
        below_infinity += magnitude < infinity;
        finite += magnitude < INFINITY;
    }
    found->to_zero += to_zero - none;
    found->to_subnormal += below_normal - to_zero;
    found->to_infinity += finite - below_infinity;
    found->nonfinite += count - finite;
    return hs_from_bits((uint64_t)largest);
}

/* In f64 nothing is rounded, and 0 is no number that became 0. */
static void store(hstep_precision precision, double largest, const counts *found, double *y) {
    const bool rounds = precision != HSTEP_PRECISION_F64;
    y[HS_MEASURE_LARGEST] = largest;
    y[HS_MEASURE_TO_ZERO] = rounds ? (double)found->to_zero : 0;
    y[HS_MEASURE_TO_SUBNORMAL] = rounds ? (double)found->to_subnormal : 0;
    y[HS_MEASURE_TO_INFINITY] = rounds ? (double)found->to_infinity : 0;
    y[HS_MEASURE_NONFINITE] = (double)found->nonfinite;
}

void HS_EXACT(measure)(const hs_call *call, hs_kernel_run *run) {
    const hs_view *view = &call->inputs[0];
    const size_t total = hs_view_elements(view), spans = (total + HS_SPAN - 1) / HS_SPAN;
    const limits l = limits_of(call->precision);
    uint64_t zeros = 0, subnormals = 0, infinities = 0, nonfinite = 0;
    double largest = 0;
#pragma omp parallel for num_threads(run->threads) if (total > HS_PARALLEL_CHEAP) reduction(max : largest)             \
    reduction(+ : zeros, subnormals, infinities, nonfinite)
    for (size_t i = 0; i < spans; i++) {
        double room[HS_SPAN];
        const size_t first = i * HS_SPAN, rest = total - first, count = rest < HS_SPAN ? rest : HS_SPAN;
        counts found = {0};
        const double most = measure_span(&l, count, hs_read(view, first, count, room), &found);
        largest = most > largest ? most : largest;
        zeros += found.to_zero;
        subnormals += found.to_subnormal;
        infinities += found.to_infinity;
        nonfinite += found.nonfinite;
    }
    store(call->precision, largest, &(counts){zeros, subnormals, infinities, nonfinite}, hs_out(call, 0));
}
