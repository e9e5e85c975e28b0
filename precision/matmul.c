#include "precision/matmul.h"

#include "precision/format.h"

static double hs_chain_f64(size_t count, const double *a, size_t a_stride, const double *b, size_t b_stride) {
    double sum = 0;
    for (size_t k = 0; k < count; k++)
        sum = sum + a[k * a_stride] * b[k * b_stride];
    return sum;
}

static float hs_chain_f32(hstep_format format, size_t count, const double *a, size_t a_stride, const double *b,
                          size_t b_stride) {
    float sum = 0;
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
            if (precision == HSTEP_PRECISION_F64) {
                sum = hs_chain_f64(k, row, a.column_stride, column, b.row_stride);
                y[i * y_stride + j] = sum;
            } else {
                hstep_format format = hs_precision_format(precision);
                sum = (double)hs_chain_f32(format, k, row, a.column_stride, column, b.row_stride);
                y[i * y_stride + j] = hs_decode(format, hs_encode(format, sum));
            }
            if (sums != NULL)
                sums[i * n + j] = sum;
        }
    }
}
