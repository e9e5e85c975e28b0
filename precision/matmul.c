#include "precision/matmul.h"

#include <math.h>

#include "precision/format.h"

static double hs_chain_f64(double sum, size_t count, const double *a, size_t a_stride, const double *b,
                           size_t b_stride) {
    for (size_t k = 0; k < count; k++)
        sum = sum + a[k * a_stride] * b[k * b_stride];
    return sum;
}

static float hs_chain_f32(float sum, hstep_format format, size_t count, const double *a, size_t a_stride,
                          const double *b, size_t b_stride) {
    for (size_t k = 0; k < count; k++) {
        float x = (float)hs_decode(format, hs_encode(format, a[k * a_stride]));
        float w = (float)hs_decode(format, hs_encode(format, b[k * b_stride]));
        sum = sum + x * w;
    }
    return sum;
}

void hs_policy_matmul(hstep_precision precision, size_t m, size_t n, size_t k, hs_matrix a, hs_matrix b, double *y,
                      size_t y_stride, double *sums) {
    for (size_t i = 0; i < m; i++) {
        const double *row = a.data + i * a.row_stride;
        for (size_t j = 0; j < n; j++) {
            const double *column = b.data + j * b.column_stride;
            double sum;
            if (precision == HSTEP_PRECISION_F64)
                sum = hs_chain_f64(0, k, row, a.column_stride, column, b.row_stride);
            else
                sum = (double)hs_chain_f32(0, hs_precision_format(precision), k, row, a.column_stride, column,
                                           b.row_stride);
            y[i * y_stride + j] = hs_precision_round(precision, sum);
            if (sums != NULL)
                sums[i * n + j] = sum;
        }
    }
}

void hs_policy_continue(hstep_precision precision, size_t m, size_t n, size_t k, hs_matrix a, hs_matrix b, double *sums,
                        size_t stride) {
    for (size_t i = 0; i < m; i++) {
        const double *row = a.data + i * a.row_stride;
        for (size_t j = 0; j < n; j++) {
            const double *column = b.data + j * b.column_stride;
            double *sum = &sums[i * stride + j];
            if (precision == HSTEP_PRECISION_F64)
                *sum = hs_chain_f64(*sum, k, row, a.column_stride, column, b.row_stride);
            else
                *sum = (double)hs_chain_f32((float)*sum, hs_precision_format(precision), k, row, a.column_stride,
                                            column, b.row_stride);
        }
    }
}

void hs_policy_round(hstep_precision precision, size_t m, size_t n, double *sums, size_t stride) {
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            sums[i * stride + j] = hs_precision_round(precision, sums[i * stride + j]);
}

/* Steps along k that every row takes before the next ones, so that what they read of b stays in the processor. */
enum { HS_SUM_STEPS = 128 };

/* Continues the chains of one row over k steps: two at a time, one after the other in every cell. */
#define HS_DEFINE_CONTINUE(name, real, magnitude)                                                                      \
    static void name(size_t n, size_t k, const double *a, const double *b, double *restrict sums,                      \
                     double *restrict magnitudes) {                                                                    \
        for (; k >= 2; k -= 2, a += 2, b += 2 * n)                                                                     \
            for (size_t j = 0; j < n; j++) {                                                                           \
                const real p = (real)a[0] * (real)b[j], q = (real)a[1] * (real)b[n + j];                               \
                const real s = (real)sums[j] + p;                                                                      \
                sums[j] = (double)(s + q);                                                                             \
                magnitudes[j] += (double)magnitude(p) + (double)magnitude(q);                                          \
            }                                                                                                          \
        for (size_t j = 0; j < n && k > 0; j++) {                                                                      \
            const real p = (real)a[0] * (real)b[j];                                                                    \
            sums[j] = (double)((real)sums[j] + p);                                                                     \
            magnitudes[j] += (double)magnitude(p);                                                                     \
        }                                                                                                              \
    }

HS_DEFINE_CONTINUE(hs_continue_f64, double, fabs)
HS_DEFINE_CONTINUE(hs_continue_f32, float, fabsf)

void hs_policy_sums(hstep_precision precision, size_t m, size_t n, size_t k, const double *a, const double *b,
                    double *sums, double *magnitudes) {
    for (size_t i = 0; i < m * n; i++)
        sums[i] = magnitudes[i] = 0;
    for (size_t first = 0; first < k; first += HS_SUM_STEPS)
        for (size_t i = 0; i < m; i++) {
            const size_t steps = k - first < HS_SUM_STEPS ? k - first : HS_SUM_STEPS;
            (precision == HSTEP_PRECISION_F64 ? hs_continue_f64 : hs_continue_f32)(
                n, steps, a + i * k + first, b + first * n, sums + i * n, magnitudes + i * n);
        }
}
