/* hstep_matmul, hstep_encode and hstep_decode as a caller meets them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/random.h"
#include "support/models.h"

enum { M = 5, N = 7, K = 9 };

/* The policy written out once more for one cell, on public conversions only. */
static double cell(hstep_precision precision, const double *a, const double *b) {
    if (precision == HSTEP_PRECISION_F64) {
        volatile double sum = 0, product;
        for (size_t k = 0; k < K; k++) {
            product = a[k] * b[k];
            sum = sum + product;
        }
        return sum;
    }
    const hstep_format format = precision == HSTEP_PRECISION_FP16 ? HSTEP_FP16 : HSTEP_BF16;
    volatile float sum = 0, product;
    for (size_t k = 0; k < K; k++) {
        product = (float)hstep_decode(format, hstep_encode(format, a[k])) *
                  (float)hstep_decode(format, hstep_encode(format, b[k]));
        sum = sum + product;
    }
    return hstep_decode(format, hstep_encode(format, (double)sum));
}

static void check_products(hstep_context *context, hstep_precision precision) {
    hs_random random = {.state = 99};
    double left[M][K], right[N][K], a[M * K], b[K * N], y[M * N];
    for (size_t i = 0; i < M * K; i++)
        left[i / K][i % K] = 2 * hs_random_uniform(&random) - 1;
    for (size_t i = 0; i < N * K; i++)
        right[i / K][i % K] = 2 * hs_random_uniform(&random) - 1;
    hstep_error error = {0};
    for (int form = 0; form < 4; form++) {
        const hstep_transpose a_form = (hstep_transpose)(form & 1), b_form = (hstep_transpose)(form >> 1);
        for (size_t i = 0; i < M; i++)
            for (size_t k = 0; k < K; k++)
                a[a_form == HSTEP_TRANSPOSE ? k * M + i : i * K + k] = left[i][k];
        for (size_t j = 0; j < N; j++)
            for (size_t k = 0; k < K; k++)
                b[b_form == HSTEP_TRANSPOSE ? j * K + k : k * N + j] = right[j][k];
        hs_test_expect_ok(hstep_matmul(context, precision, a_form, b_form, M, N, K, a, b, y, &error), &error);
        for (size_t i = 0; i < M; i++)
            for (size_t j = 0; j < N; j++)
                cr_expect_eq(y[i * N + j], cell(precision, left[i], right[j]));
    }
}

Test(number, products_follow_the_policy_in_every_form) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_context_create(NULL, &context, &error), &error);
    for (hstep_precision precision = HSTEP_PRECISION_F64; precision <= HSTEP_PRECISION_BF16; precision++) {
        check_products(context, precision);
        check_products(NULL, precision);
    }
    hstep_context_destroy(context);
}

Test(number, empty_products) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_context_create(NULL, &context, &error), &error);
    hstep_context *const contexts[] = {context, NULL};
    for (size_t i = 0; i < 2; i++) {
        double y[6] = {1, 1, 1, 1, 1, 1};
        const double b[12] = {0};
        hs_test_expect_ok(hstep_matmul(contexts[i], HSTEP_PRECISION_BF16, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, 2, 3,
                                       0, NULL, NULL, y, &error),
                          &error);
        for (size_t j = 0; j < 6; j++)
            cr_expect(y[j] == 0 && !signbit(y[j]));
        hs_test_expect_ok(hstep_matmul(contexts[i], HSTEP_PRECISION_F64, HSTEP_TRANSPOSE, HSTEP_TRANSPOSE, 0, 3, 4,
                                       NULL, b, NULL, &error),
                          &error);
    }
    hstep_context_destroy(context);
}

/* Nothing to compute takes no time, however many empty rows or columns there are. */
Test(number, empty_results_of_any_size, .timeout = 10) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    hs_test_expect_ok(hstep_context_create(NULL, &context, &error), &error);
    const size_t many = (size_t)1 << 62;
    hstep_context *const contexts[] = {context, NULL};
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(hstep_matmul(contexts[i], HSTEP_PRECISION_F64, 0, 0, many, 0, 0, NULL, NULL, NULL, &error),
                     HSTEP_OK);
        cr_expect_eq(hstep_matmul(contexts[i], HSTEP_PRECISION_BF16, 0, 0, 0, many, 0, NULL, NULL, NULL, &error),
                     HSTEP_OK);
    }
    hstep_context_destroy(context);
}

Test(number, refuses_bad_arguments) {
    hstep_error error = {0};
    double one = 1, y = 7;
    cr_expect_eq(hstep_matmul(NULL, HSTEP_PRECISION_F64, 0, 0, 1, 1, 1, NULL, &one, &y, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_matmul(NULL, HSTEP_PRECISION_F64, 0, 0, 1, 1, 1, &one, &one, NULL, &error),
                 HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_matmul(NULL, (hstep_precision)3, 0, 0, 1, 1, 1, &one, &one, &y, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_matmul(NULL, HSTEP_PRECISION_F64, (hstep_transpose)2, 0, 1, 1, 1, &one, &one, &y, NULL),
                 HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_matmul(NULL, HSTEP_PRECISION_F64, 0, 0, SIZE_MAX, 2, 1, &one, &one, &y, &error),
                 HSTEP_ERROR_SHAPE);
    cr_expect_eq(y, 7);
}

Test(number, precision_names) {
    hstep_precision precision = HSTEP_PRECISION_F64;
    cr_expect_eq(hstep_precision_parse("bf16", &precision), HSTEP_OK);
    cr_expect_eq(precision, HSTEP_PRECISION_BF16);
    cr_expect_eq(hstep_precision_parse("fp16-fp32", &precision), HSTEP_OK);
    cr_expect_eq(precision, HSTEP_PRECISION_FP16);
    cr_expect_eq(hstep_precision_parse("float", &precision), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(precision, HSTEP_PRECISION_FP16);
    cr_expect_str_eq(hstep_precision_name(HSTEP_PRECISION_BF16), "bf16-fp32");
}
