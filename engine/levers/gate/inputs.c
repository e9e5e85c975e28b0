#include "engine/levers/gate/inputs.h"

#include <math.h>

#include "precision/format.h"
#include "precision/random.h"

const char *hs_inputs_name(hs_inputs inputs) {
    static const char *const names[HS_INPUTS_COUNT] = {"uniform",    "run-like",  "huge",
                                                       "cancelling", "subnormal", "nonfinite"};
    return names[inputs];
}

bool hs_inputs_decide(hs_inputs inputs) { return inputs == HS_INPUTS_UNIFORM || inputs == HS_INPUTS_RUN_LIKE; }

static double uniform(hs_random *random, double low, double high) {
    return low + (high - low) * hs_random_uniform(random);
}

/* About normal, with variance 1: four uniform numbers have a twelfth each. */
static double bell(hs_random *random) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += hs_random_uniform(random);
    return (sum - 2) * 1.7320508075688772;
}

static void fill_uniform(hs_random *random, size_t count, double *x) {
    for (size_t i = 0; i < count; i++)
        x[i] = uniform(random, -0.2, 0.2);
}

static void fill_run_like(hs_random *random, size_t m, size_t n, size_t k, double *a, double *b) {
    for (size_t i = 0; i < m * k; i++)
        a[i] = bell(random) * (i % k % 16 == 5 ? 8 : 1);
    for (size_t i = 0; i < k * n; i++)
        b[i] = 0.02 * bell(random);
}

/* Magnitudes up to 0.99 * 2^exponent, none below half of that. */
static void fill_magnitudes(hs_random *random, int exponent, size_t count, double *x) {
    for (size_t i = 0; i < count; i++)
        x[i] = ldexp(hs_random_next(random) % 2 ? uniform(random, 0.5, 0.99) : uniform(random, -0.99, -0.5), exponent);
}

/* The left operand comes near the largest number of the format; k products of it stay below that of the sums. */
static void fill_huge(hs_random *random, hstep_precision precision, size_t m, size_t n, size_t k, double *a,
                      double *b) {
    int log_k = 0;
    while (((size_t)1 << log_k) < k)
        log_k++;
    const bool fp16 = precision == HSTEP_PRECISION_FP16;
    fill_magnitudes(random, fp16 ? 16 : (precision == HSTEP_PRECISION_F64 ? 1023 : 127) - log_k, m * k, a);
    fill_magnitudes(random, fp16 ? 16 : 0, k * n, b);
}

/* In rows 0, 16, ... the second half of a is the first one negated, and b repeats its first half. */
static void fill_cancelling(hs_random *random, size_t m, size_t n, size_t k, double *a, double *b) {
    const size_t half = k / 2;
    fill_uniform(random, m * k, a);
    fill_uniform(random, k * n, b);
    for (size_t i = 0; i < half * n; i++)
        b[half * n + i] = b[i];
    for (size_t row = 0; row < m; row += 16)
        for (size_t i = 0; i < half; i++)
            a[row * k + half + i] = -a[row * k + i];
    for (size_t row = 0; row < m && k % 2 != 0; row += 16)
        a[row * k + k - 1] = 0;
}

/*
 * Multiples of the smallest subnormal by small integers have exact products and sums, so that whoever flushes shows. In
 * odd columns the other operand is a large power of two, and the products are normal.
 */
static void fill_subnormal(hs_random *random, hstep_precision precision, size_t m, size_t n, size_t k, double *a,
                           double *b) {
    static const int exponents[] = {-1074, -24, -133}, fractions[] = {50, 10, 7}, large[] = {600, 12, 64};
    for (size_t i = 0; i < m * k; i++) {
        const double whole = (double)(hs_random_next(random) % ((UINT64_C(1) << (fractions[precision] / 2)) - 1) + 1);
        a[i] = ldexp(hs_random_next(random) % 2 ? whole : -whole, exponents[precision]);
    }
    for (size_t i = 0; i < k * n; i++) {
        const double whole = (double)(hs_random_next(random) % 17) - 8;
        b[i] = i % n % 2 == 0 ? whole : ldexp(whole, large[precision]);
    }
}

/* A few nonfinite operands, each facing zeros somewhere: a kernel that skips zeros misses the NaN of 0 * inf. */
static void fill_nonfinite(hs_random *random, size_t m, size_t n, size_t k, double *a, double *b) {
    static const double values[] = {INFINITY, -INFINITY, NAN};
    fill_uniform(random, m * k, a);
    fill_uniform(random, k * n, b);
    for (size_t i = 0; i < m * k; i++)
        a[i] = hs_random_next(random) % 8 == 0 ? 0 : a[i];
    for (size_t i = 0; i < k * n; i++)
        b[i] = hs_random_next(random) % 8 == 0 ? 0 : b[i];
    for (size_t i = 0; i < 3; i++) {
        a[hs_random_next(random) % m * k + hs_random_next(random) % k] = values[i];
        b[hs_random_next(random) % k * n + hs_random_next(random) % n] = values[i];
    }
}

static void represent(hstep_precision precision, size_t count, double *x) {
    for (size_t i = 0; i < count; i++)
        x[i] = hs_precision_round(precision, x[i]);
}

void hs_inputs_flush(hstep_precision precision, size_t count, double *x) {
    const double smallest_normal = hs_precision_smallest_normal(precision);
    for (size_t i = 0; i < count; i++)
        if (fabs(x[i]) < smallest_normal)
            x[i] = copysign(0, x[i]);
}

void hs_inputs_fill(hs_inputs inputs, hstep_precision precision, size_t m, size_t n, size_t k, double *a, double *b) {
    hs_random random = {(uint64_t)inputs * 1000003 + k};
    switch (inputs) {
    case HS_INPUTS_RUN_LIKE:
        fill_run_like(&random, m, n, k, a, b);
        break;
    case HS_INPUTS_HUGE:
        fill_huge(&random, precision, m, n, k, a, b);
        break;
    case HS_INPUTS_CANCELLING:
        fill_cancelling(&random, m, n, k, a, b);
        break;
    case HS_INPUTS_SUBNORMAL:
        fill_subnormal(&random, precision, m, n, k, a, b);
        break;
    case HS_INPUTS_NONFINITE:
        fill_nonfinite(&random, m, n, k, a, b);
        break;
    case HS_INPUTS_UNIFORM:
    case HS_INPUTS_COUNT:
        fill_uniform(&random, m * k, a);
        fill_uniform(&random, k * n, b);
        break;
    }
    represent(precision, m * k, a);
    represent(precision, k * n, b);
}
