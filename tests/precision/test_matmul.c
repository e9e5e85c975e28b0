/* The plain product against golden checksums, an independent chain and the corners of the policy's section 2. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "precision/format.h"
#include "precision/matmul.h"
#include "precision/random.h"
#include "support/vectors.h"

static int64_t integer(const json_t *object, const char *key) {
    json_t *member = hs_vectors_member(object, key);
    cr_assert(json_is_integer(member), "%s", key);
    return json_integer_value(member);
}

/* One element by the formulas that matmul.json states. */
static double element(const json_t *rule, bool left, int64_t rows, int64_t cols, int64_t r, int64_t c) {
    const char *kind = json_string_value(hs_vectors_member(rule, "kind"));
    int64_t j = r * cols + c;
    double factor = 1;
    if (strcmp(kind, "anti_a") == 0 || strcmp(kind, "anti_b") == 0) {
        cr_assert_eq(left, kind[5] == 'a');
        int64_t k = left ? c : r, h = (left ? cols : rows) / 2;
        int64_t q = k < 2 * h ? k % h : k;
        j = left ? r * cols + q : q * cols + c;
        factor = ldexp(1, (int)(integer(rule, "wstep") * (j % integer(rule, "w"))));
        if (left && h <= k && k < 2 * h)
            factor = -factor;
        kind = "lin";
    }
    int64_t t = j * integer(rule, "mul") + integer(rule, "add");
    double scale = ldexp(factor, (int)integer(rule, "exp"));
    if (strcmp(kind, "lin") == 0)
        return (double)(t % integer(rule, "mod") - integer(rule, "off")) * scale;
    cr_assert_str_eq(kind, "tie");
    int b = (int)integer(rule, "b");
    t %= (INT64_C(1) << (b - 1)) - 1;
    double sign = integer(rule, "alt") != 0 && j % 2 != 0 ? -1 : 1;
    return sign * (1 + ldexp((double)(2 * t + 1), -b) + ldexp((double)(j % 3 - 1), -45)) * scale;
}

static double *matrix(const json_t *item, const char *name, int64_t rows, int64_t cols) {
    double *data = malloc((size_t)(rows * cols + 1) * sizeof *data);
    cr_assert(data != NULL);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            data[r * cols + c] = element(hs_vectors_member(item, name), name[0] == 'A', rows, cols, r, c);
    char key[16], hex[65];
    snprintf(key, sizeof key, "%s_sha256", name);
    hs_test_sha256(data, (size_t)(rows * cols) * sizeof *data, hex);
    cr_assert_str_eq(hex, json_string_value(hs_vectors_member(item, key)), "the test's own %s is wrong", name);
    return data;
}

static void check_golden(const json_t *item, hstep_precision precision, const double *a, const double *b) {
    size_t m = (size_t)integer(item, "M"), k = (size_t)integer(item, "K"), n = (size_t)integer(item, "N");
    double *y = malloc(m * n * sizeof *y);
    uint16_t *bits = malloc(m * n * sizeof *bits);
    cr_assert(y != NULL && bits != NULL);
    hs_policy_matmul(precision, m, n, k, (hs_matrix){a, k, 1}, (hs_matrix){b, n, 1}, y, n, NULL);
    hstep_format format = hs_precision_format(precision);
    for (size_t i = 0; i < m * n; i++)
        bits[i] = hs_encode(format, y[i]);
    json_t *want = hs_vectors_member(item, format == HSTEP_FP16 ? "fp16" : "bf16");
    json_t *first = hs_vectors_member(want, "first16");
    for (size_t i = 0; i < json_array_size(first); i++)
        cr_assert_eq(bits[i], hs_vectors_hex(json_array_get(first, i)), "case %" PRId64 ", cell %zu",
                     integer(item, "id"), i);
    char hex[65];
    hs_test_sha256(bits, m * n * sizeof *bits, hex);
    cr_assert_str_eq(hex, json_string_value(hs_vectors_member(want, "sha256")), "case %" PRId64, integer(item, "id"));
    free(y);
    free(bits);
}

Test(matmul, agrees_with_the_golden_products) {
    json_t *root = hs_vectors_load("matmul.json");
    json_t *cases = hs_vectors_member(root, "cases");
    cr_assert_eq(json_array_size(cases), 10);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *item = json_array_get(cases, i);
        int64_t m = integer(item, "M"), k = integer(item, "K"), n = integer(item, "N");
        double *a = matrix(item, "A", m, k), *b = matrix(item, "B", k, n);
        check_golden(item, HSTEP_PRECISION_FP16, a, b);
        check_golden(item, HSTEP_PRECISION_BF16, a, b);
        free(a);
        free(b);
    }
    json_decref(root);
}

/* RN32 of an f64 sum or product of two f32: exact enough that rounding it again is innocuous (53 >= 2 * 24 + 2). */
static double rn32(double value) { return (double)(float)value; }

enum { M = 5, N = 7, K = 11 };

static double chain(hstep_precision precision, const double *a, const double *b, size_t i, size_t j) {
    double s = 0;
    for (size_t k = 0; k < K; k++) {
        double x = a[i * K + k], w = b[k * N + j];
        if (precision == HSTEP_PRECISION_F64) {
            s += x * w;
            continue;
        }
        hstep_format format = hs_precision_format(precision);
        x = hs_decode(format, hs_encode(format, x));
        w = hs_decode(format, hs_encode(format, w));
        s = rn32(s + rn32(x * w));
    }
    return s;
}

static void draw(hs_random *random, size_t count, double *x) {
    for (size_t i = 0; i < count; i++)
        x[i] = 2 * hs_random_uniform(random) - 1;
}

Test(matmul, keeps_the_chain_in_sums_and_rounds_it_once) {
    hs_random random = {1};
    double a[M * K], b[K * N], y[M * (N + 2)], sums[M * N];
    draw(&random, M * K, a);
    draw(&random, K * N, b);
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++) {
        for (size_t i = 0; i < M * (N + 2); i++)
            y[i] = 77;
        hs_policy_matmul(p, M, N, K, (hs_matrix){a, K, 1}, (hs_matrix){b, N, 1}, y, N + 2, sums);
        for (size_t i = 0; i < M; i++) {
            for (size_t j = 0; j < N; j++) {
                double want = chain(p, a, b, i, j);
                cr_assert_eq(sums[i * N + j], want);
                if (p != HSTEP_PRECISION_F64)
                    want = hs_decode(hs_precision_format(p), hs_encode(hs_precision_format(p), want));
                cr_assert_eq(y[i * (N + 2) + j], want);
            }
            cr_assert(y[i * (N + 2) + N] == 77 && y[i * (N + 2) + N + 1] == 77, "wrote into the row pitch");
        }
    }
}

/* The adjoints dA = dY Bt and dB = At dY read the stored operands by stride; copies turned round must give the same. */
Test(matmul, reads_transposed_operands_by_stride) {
    hs_random random = {2};
    double a[M * K], b[K * N], dy[M * N], bt[N * K], at[K * M];
    draw(&random, M * K, a);
    draw(&random, K * N, b);
    draw(&random, M * N, dy);
    for (size_t r = 0; r < K; r++)
        for (size_t c = 0; c < N; c++)
            bt[c * K + r] = b[r * N + c];
    for (size_t r = 0; r < M; r++)
        for (size_t c = 0; c < K; c++)
            at[c * M + r] = a[r * K + c];
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++) {
        double da[M * K], da_copy[M * K], db[K * N], db_copy[K * N];
        hs_policy_matmul(p, M, K, N, (hs_matrix){dy, N, 1}, (hs_matrix){b, 1, N}, da, K, NULL);
        hs_policy_matmul(p, M, K, N, (hs_matrix){dy, N, 1}, (hs_matrix){bt, K, 1}, da_copy, K, NULL);
        cr_assert_arr_eq(da, da_copy, sizeof da);
        hs_policy_matmul(p, K, N, M, (hs_matrix){a, 1, K}, (hs_matrix){dy, N, 1}, db, N, NULL);
        hs_policy_matmul(p, K, N, M, (hs_matrix){at, M, 1}, (hs_matrix){dy, N, 1}, db_copy, N, NULL);
        cr_assert_arr_eq(db, db_copy, sizeof db);
    }
}

Test(matmul, gives_plus_zero_for_an_empty_chain) {
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++) {
        double y[6] = {1, 1, 1, 1, 1, 1}, sums[6] = {1, 1, 1, 1, 1, 1};
        hs_policy_matmul(p, 2, 3, 0, (hs_matrix){NULL, 0, 1}, (hs_matrix){NULL, 3, 1}, y, 3, sums);
        for (size_t i = 0; i < 6; i++)
            cr_assert(hs_test_bits(y[i]) == 0 && hs_test_bits(sums[i]) == 0);
        hs_policy_matmul(p, 0, 3, 2, (hs_matrix){NULL, 2, 1}, (hs_matrix){NULL, 3, 1}, y, 3, NULL);
    }
}

/* The chain starts at +0, so even products that are all -0 sum to +0. */
Test(matmul, starts_every_chain_at_plus_zero) {
    const double a[2] = {-0.0, -0.0}, b[2] = {1, 2};
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++) {
        double y = 1;
        hs_policy_matmul(p, 1, 1, 2, (hs_matrix){a, 2, 1}, (hs_matrix){b, 1, 1}, &y, 1, NULL);
        cr_assert_eq(hs_test_bits(y), 0);
    }
}

static double dot(hstep_precision p, size_t k, const double *a, const double *b, double *sum) {
    double y;
    hs_policy_matmul(p, 1, 1, k, (hs_matrix){a, k, 1}, (hs_matrix){b, 1, 1}, &y, 1, sum);
    return y;
}

Test(matmul, carries_infinities_and_nans) {
    double sum;
    /* An operand beyond fp16 becomes infinite; bf16 and f64 hold it. */
    cr_assert_eq(dot(HSTEP_PRECISION_FP16, 1, (double[]){65520}, (double[]){1}, &sum), INFINITY);
    cr_assert_eq(sum, INFINITY);
    cr_assert_eq(dot(HSTEP_PRECISION_BF16, 1, (double[]){65536}, (double[]){1}, &sum), 65536);
    /* The f32 sum is finite, only its rounding overflows. */
    cr_assert_eq(dot(HSTEP_PRECISION_FP16, 2, (double[]){60000, 60000}, (double[]){1, 1}, &sum), INFINITY);
    cr_assert_eq(sum, 2 * 60000);
    /* bf16 products overflow f32 itself. */
    cr_assert_eq(dot(HSTEP_PRECISION_BF16, 1, (double[]){-0x1p100}, (double[]){0x1p100}, &sum), -INFINITY);
    cr_assert_eq(sum, -INFINITY);
    for (hstep_precision p = HSTEP_PRECISION_F64; p <= HSTEP_PRECISION_BF16; p++) {
        cr_assert(isnan(dot(p, 2, (double[]){INFINITY, -INFINITY}, (double[]){1, 1}, &sum)) && isnan(sum));
        cr_assert(isnan(dot(p, 1, (double[]){INFINITY}, (double[]){0}, &sum)) && isnan(sum));
        cr_assert(isnan(dot(p, 2, (double[]){NAN, 1}, (double[]){1, 1}, &sum)) && isnan(sum));
    }
    double nan = dot(HSTEP_PRECISION_FP16, 1, (double[]){-NAN}, (double[]){1}, &sum);
    cr_assert_eq(hs_test_bits(nan), UINT64_C(0x7ff8000000000000));
}

/* 2^24 + 1 + 1 stays 2^24 in ascending f32; any other order, or an f64 sum, would show. */
Test(matmul, adds_in_ascending_order_in_f32) {
    double sum;
    const double up[] = {0x1p12, 1, 1}, down[] = {1, 1, 0x1p12};
    const double w[] = {0x1p12, 1, 1}, w_down[] = {1, 1, 0x1p12};
    dot(HSTEP_PRECISION_FP16, 3, up, w, &sum);
    cr_assert_eq(sum, 0x1p24);
    dot(HSTEP_PRECISION_FP16, 3, down, w_down, &sum);
    cr_assert_eq(sum, 0x1p24 + 2);
    dot(HSTEP_PRECISION_F64, 3, up, w, &sum);
    cr_assert_eq(sum, 0x1p24 + 2);
    /* A product is rounded before it is added: a fused chain would keep 2^-60 of the second. */
    const double fused[] = {-1, 1 + 0x1p-30}, fused_w[] = {1, 1 - 0x1p-30};
    dot(HSTEP_PRECISION_F64, 2, fused, fused_w, &sum);
    cr_assert_eq(sum, 0);
}

/* Products of halves are exact in f32 except in bf16 at the ends of the range, where a fused chain would show. */
Test(matmul, rounds_each_product_before_it_is_added) {
    double sum;
    dot(HSTEP_PRECISION_BF16, 2, (double[]){0x1p-100, 0x1p-100}, (double[]){0x1p-49, 0x1p-50}, &sum);
    cr_assert_eq(sum, 0x1p-149, "the second product is a tie that rounds to zero");
    dot(HSTEP_PRECISION_BF16, 2, (double[]){-0x1p127, 0x1p127}, (double[]){1, 2}, &sum);
    cr_assert_eq(sum, INFINITY);
}
