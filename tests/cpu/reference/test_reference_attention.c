/*
 * Attention against a second computation that keeps whole matrices: unformed cells are zeros that take part in every
 * sum, which for finite values gives the same bits. Then small cases that can be worked out by hand.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "precision/arithmetic.h"
#include "precision/format.h"
#include "support/calls.h"

enum { LONGEST = 80 };

static hs_backend *backend;

static void setup(void) { cr_assert_eq(hs_cpu_reference_create(&backend, NULL), HSTEP_OK); }

static void teardown(void) { backend->api->destroy(backend); }

TestSuite(attention, .init = setup, .fini = teardown);

/* One sum of a chain, and its end. */
static double chain(hstep_precision precision, double sum, double a, double b) {
    if (precision == HSTEP_PRECISION_F64)
        return sum + a * b;
    const hstep_format format = hs_precision_format(precision);
    const float x = (float)hs_decode(format, hs_encode(format, a)), y = (float)hs_decode(format, hs_encode(format, b));
    const float product = x * y;
    return (double)((float)sum + product);
}

static double finish(hstep_precision precision, double sum) {
    if (precision == HSTEP_PRECISION_F64)
        return sum;
    const hstep_format format = hs_precision_format(precision);
    return hs_decode(format, hs_encode(format, sum));
}

static double row_sum(const double *x, size_t count) {
    double lanes[32] = {0.0};
    for (size_t i = 0; i < count; i++)
        lanes[i % 32] += x[i];
    for (size_t width = 16; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++)
            lanes[j] += lanes[j + width];
    return lanes[0];
}

/* One query head of one sequence. */
typedef struct head {
    const hs_test_description *d;
    const double *q, *k, *v, *dy; /* first element of the head; rows are q_row and k_row apart */
    size_t q_row, k_row;
    const int32_t *positions;
    double p[LONGEST][LONGEST], ds[LONGEST][LONGEST];
} head;

static head *open_head(const hs_test_call *t, size_t sequence, size_t h) {
    const hs_test_description *d = &t->description;
    const unsigned first = d->operation == HS_OP_ATTENTION_BACKWARD ? 1 : 0;
    head *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    made->d = d;
    made->q_row = d->heads * d->head_width;
    made->k_row = d->kv_heads * d->head_width;
    const size_t q_start = sequence * d->queries * made->q_row + h * d->head_width;
    const size_t k_start = sequence * d->keys * made->k_row + h / (d->heads / d->kv_heads) * d->head_width;
    made->dy = t->inputs[0].f64 + q_start;
    made->q = t->inputs[first].f64 + q_start;
    made->k = t->inputs[first + 1].f64 + k_start;
    made->v = t->inputs[first + 2].f64 + k_start;
    made->positions = t->inputs[first + 3].i32 + sequence * d->queries;
    return made;
}

static bool formed(const head *h, size_t query, size_t key) { return (int32_t)key <= h->positions[query]; }

/* A cell of x yt over the head width. */
static double dot(const head *h, const double *x, const double *y) {
    double sum = 0.0;
    for (size_t i = 0; i < h->d->head_width; i++)
        sum = chain(h->d->precision, sum, x[i], y[i]);
    return finish(h->d->precision, sum);
}

static void fill_probabilities(head *h) {
    const double factor = 1.0 / sqrt((double)h->d->head_width);
    for (size_t r = 0; r < h->d->queries; r++) {
        double m = -INFINITY;
        for (size_t j = 0; j < h->d->keys; j++)
            if (formed(h, r, j)) {
                h->p[r][j] = dot(h, h->q + r * h->q_row, h->k + j * h->k_row) * factor;
                m = fmax(m, h->p[r][j]);
            }
        for (size_t j = 0; j < h->d->keys; j++)
            h->p[r][j] = formed(h, r, j) ? hs_exp(h->p[r][j] - m) : 0.0;
        const double inverse = 1.0 / row_sum(h->p[r], h->d->keys);
        for (size_t j = 0; j < h->d->keys; j++)
            h->p[r][j] = h->p[r][j] * inverse;
    }
}

static void fill_scores_adjoint(head *h) {
    const double factor = 1.0 / sqrt((double)h->d->head_width);
    for (size_t r = 0; r < h->d->queries; r++) {
        double g[LONGEST] = {0.0}, products[LONGEST] = {0.0};
        for (size_t j = 0; j < h->d->keys; j++)
            if (formed(h, r, j)) {
                g[j] = dot(h, h->dy + r * h->q_row, h->v + j * h->k_row);
                products[j] = h->p[r][j] * g[j];
            }
        const double sum = row_sum(products, h->d->keys);
        for (size_t j = 0; j < h->d->keys; j++)
            h->ds[r][j] = formed(h, r, j) ? (h->p[r][j] * (g[j] - sum)) * factor : 0.0;
    }
}

/* Row r of matrix times x, column i; and row j of its transpose. */
static double across(const head *h, double (*matrix)[LONGEST], size_t r, const double *x, size_t i) {
    double sum = 0.0;
    for (size_t j = 0; j < h->d->keys; j++)
        sum = chain(h->d->precision, sum, matrix[r][j], x[j * h->k_row + i]);
    return finish(h->d->precision, sum);
}

static double down(const head *h, double (*matrix)[LONGEST], size_t j, const double *x, size_t i) {
    double sum = 0.0;
    for (size_t r = 0; r < h->d->queries; r++)
        sum = chain(h->d->precision, sum, matrix[r][j], x[r * h->q_row + i]);
    return finish(h->d->precision, sum);
}

static void same(double actual, double expected, const char *what, size_t sequence, size_t h, size_t row, size_t i) {
    cr_expect(hs_test_same_value(actual, expected), "%s, sequence %zu, head %zu, row %zu, column %zu: %a, not %a", what,
              sequence, h, row, i, actual, expected);
}

static void check_forward(const hs_test_call *t, const hs_test_result *result) {
    const hs_test_description *d = &t->description;
    for (size_t s = 0; s < d->sequences; s++)
        for (size_t n = 0; n < d->heads; n++) {
            head *h = open_head(t, s, n);
            fill_probabilities(h);
            for (size_t r = 0; r < d->queries; r++)
                for (size_t i = 0; i < d->head_width; i++) {
                    const size_t place = (s * d->queries + r) * h->q_row + n * d->head_width + i;
                    same(result->outputs[0][place], across(h, h->p, r, h->v, i), "y", s, n, r, i);
                }
            free(h);
        }
}

/* dk and dv of one key head: the contributions of its query heads, each rounded, then added in f64, ascending. */
static void check_key_head(const hs_test_call *t, const hs_test_result *result, size_t s, size_t g) {
    const hs_test_description *d = &t->description;
    const size_t group = d->heads / d->kv_heads, cells = d->keys * d->head_width;
    double dk[LONGEST * LONGEST], dv[LONGEST * LONGEST];
    for (size_t n = g * group; n < (g + 1) * group; n++) {
        head *h = open_head(t, s, n);
        fill_probabilities(h);
        fill_scores_adjoint(h);
        for (size_t c = 0; c < cells; c++) {
            const size_t j = c / d->head_width, i = c % d->head_width;
            const double of_k = down(h, h->ds, j, h->q, i), of_v = down(h, h->p, j, h->dy, i);
            dk[c] = n == g * group ? of_k : dk[c] + of_k;
            dv[c] = n == g * group ? of_v : dv[c] + of_v;
        }
        for (size_t r = 0; r < d->queries; r++)
            for (size_t i = 0; i < d->head_width; i++) {
                const size_t place = (s * d->queries + r) * h->q_row + n * d->head_width + i;
                same(result->outputs[0][place], across(h, h->ds, r, h->k, i), "dq", s, n, r, i);
            }
        free(h);
    }
    for (size_t c = 0; c < cells; c++) {
        const size_t j = c / d->head_width, i = c % d->head_width;
        const size_t place = (s * d->keys + j) * d->kv_heads * d->head_width + g * d->head_width + i;
        same(result->outputs[1][place], dk[c], "dk", s, g, j, i);
        same(result->outputs[2][place], dv[c], "dv", s, g, j, i);
    }
}

static void check_shape(const hs_test_description *d, hs_test_fill fill, uint64_t seed) {
    hs_test_call *t = hs_test_call_create(d);
    hs_test_call_fill(t, fill, seed);
    hs_test_result *result = hs_test_call_run_well(t, backend);
    if (d->operation == HS_OP_ATTENTION)
        check_forward(t, result);
    else
        for (size_t s = 0; s < d->sequences; s++)
            for (size_t g = 0; g < d->kv_heads; g++)
                check_key_head(t, result, s, g);
    cr_expect_eq(result->flag, 0);
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

Test(attention, agrees_in_bits_with_whole_matrices) {
    static const size_t shapes[][5] = {/* queries, keys, heads, kv_heads, head_width */
                                       {5, 5, 4, 2, 6},   {1, 9, 2, 1, 4},  {7, 3, 3, 3, 1},
                                       {40, 40, 2, 1, 2}, {3, 70, 3, 1, 5}, {1, 1, 1, 1, 2}};
    for (int i = 0; i < 6 * 3 * 2 * 2; i++) {
        const size_t *shape = shapes[i / 12];
        hs_test_description d = hs_test_describe(i % 2 ? HS_OP_ATTENTION_BACKWARD : HS_OP_ATTENTION);
        d.precision = (hstep_precision)(i / 2 % 3);
        d.random_positions = i / 6 % 2 != 0;
        d.pitch = d.random_positions ? 3 : 0;
        d.queries = shape[0];
        d.keys = shape[1];
        d.heads = shape[2];
        d.kv_heads = shape[3];
        d.head_width = shape[4];
        check_shape(&d, HS_TEST_UNIFORM, (uint64_t)i);
        check_shape(&d, HS_TEST_POWERS, (uint64_t)i);
    }
}

/* Against exp of the C library and sums in extended precision: the formula itself. */
Test(attention, formula_in_extended_precision) {
    hs_test_description d = hs_test_describe(HS_OP_ATTENTION);
    hs_test_call *t = hs_test_call_create(&d);
    hs_test_result *result = hs_test_call_run_well(t, backend);
    for (size_t s = 0; s < d.sequences; s++)
        for (size_t n = 0; n < d.heads; n++) {
            head *h = open_head(t, s, n);
            for (size_t r = 0; r < d.queries; r++) {
                long double z = 0, y[6] = {0};
                for (size_t j = 0; j <= r; j++) {
                    long double score = 0;
                    for (size_t i = 0; i < 6; i++)
                        score += (long double)h->q[r * h->q_row + i] * (long double)h->k[j * h->k_row + i];
                    const long double e = expl(score / sqrtl(6.0L));
                    z += e;
                    for (size_t i = 0; i < 6; i++)
                        y[i] += e * (long double)h->v[j * h->k_row + i];
                }
                for (size_t i = 0; i < 6; i++)
                    cr_expect_lt(fabsl(result->outputs[0][(s * 5 + r) * h->q_row + n * 6 + i] - y[i] / z), 1e-15L);
            }
            free(h);
        }
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
}

/* One sequence, one head of width 1: q, k, v and dy are given as one number a row. */
static hs_test_call *narrow(hs_operation operation, hstep_precision precision, size_t queries, size_t keys,
                            size_t heads) {
    hs_test_description d = hs_test_describe(operation);
    d.precision = precision;
    d.sequences = 1;
    d.queries = queries;
    d.keys = keys;
    d.heads = heads;
    d.kv_heads = 1;
    d.head_width = 1;
    return hs_test_call_create(&d);
}

static void set(hs_test_operand *operand, const double *values) {
    for (size_t i = 0; i < operand->elements; i++)
        operand->f64[i] = values[i];
}

static double only_output(hs_test_call *t, unsigned output, size_t element) {
    hs_test_result *result = hs_test_call_run_well(t, backend);
    const double y = result->outputs[output][element];
    hs_test_result_destroy(result);
    hs_test_call_destroy(t);
    return y;
}

/* Scores 2049 and 2048: in fp16 the first is a tie that becomes 2048, so the keys share, else one takes nearly all. */
Test(attention, scores_are_rounded_to_the_half) {
    const double q[1] = {1.0}, k[2] = {2049.0, 2048.0}, v[2] = {0.0, 1.0};
    for (int i = 0; i < 2; i++) {
        hs_test_call *t = narrow(HS_OP_ATTENTION, i ? HSTEP_PRECISION_FP16 : HSTEP_PRECISION_F64, 1, 2, 1);
        set(&t->inputs[0], q);
        set(&t->inputs[1], k);
        set(&t->inputs[2], v);
        const double y = only_output(t, 0, 0);
        cr_expect(i ? y == 0.5 : fabs(y - 1.0 / (1.0 + exp(1.0))) < 1e-15, "%g", y);
    }
}

/* All scores 0 and four keys: p is 1/4, and the chain over keys ascends: 2^53 + 1 - 2^53 is 0. */
Test(attention, values_add_in_the_order_of_the_keys) {
    const double zero[4] = {0.0}, v[4] = {0x1p55, 4.0, -0x1p55, 0.0}, turned[4] = {0x1p55, -0x1p55, 4.0, 0.0};
    for (int i = 0; i < 2; i++) {
        hs_test_call *t = narrow(HS_OP_ATTENTION, HSTEP_PRECISION_F64, 1, 4, 1);
        set(&t->inputs[0], zero);
        set(&t->inputs[1], zero);
        set(&t->inputs[2], i ? turned : v);
        cr_expect(only_output(t, 0, 0) == (i ? 1.0 : 0.0));
    }
}

/* One key: p is 1, and dv is the chain of dy over the queries, ascending. */
Test(attention, adjoints_of_values_add_in_the_order_of_the_queries) {
    const double zero[3] = {0.0}, dy[3] = {0x1p53, 1.0, -0x1p53}, turned[3] = {0x1p53, -0x1p53, 1.0};
    for (int i = 0; i < 2; i++) {
        hs_test_call *t = narrow(HS_OP_ATTENTION_BACKWARD, HSTEP_PRECISION_F64, 3, 1, 1);
        set(&t->inputs[0], i ? turned : dy);
        for (unsigned j = 1; j < 4; j++)
            set(&t->inputs[j], zero);
        cr_expect(only_output(t, 2, 0) == (i ? 1.0 : 0.0));
    }
}

/* Two query heads on one key head: 1 and 2^-12 are rounded each by itself, and their sum is no fp16 number. */
Test(attention, heads_of_a_group_add_in_f64) {
    const double zero[2] = {0.0}, dy[2] = {1.0, 0x1p-12 * (1.0 + 0x1p-11)};
    hs_test_call *t = narrow(HS_OP_ATTENTION_BACKWARD, HSTEP_PRECISION_FP16, 1, 1, 2);
    set(&t->inputs[0], dy);
    for (unsigned j = 1; j < 4; j++)
        set(&t->inputs[j], zero);
    cr_expect(only_output(t, 2, 0) == 1.0 + 0x1p-12);
}

/* A cache of six keys, one query at position 3: keys 4 and 5 count for nothing, even when they are infinite. */
Test(attention, keys_behind_the_position_are_not_read) {
    for (int i = 0; i < 2; i++) {
        hs_test_call *t = narrow(i ? HS_OP_ATTENTION_BACKWARD : HS_OP_ATTENTION, HSTEP_PRECISION_F64, 1, 6, 1);
        hs_test_operand *q = &t->inputs[i], *k = q + 1, *v = q + 2, *positions = q + 3;
        q->f64[0] = 0.0;
        positions->i32[0] = 3;
        if (i)
            t->inputs[0].f64[0] = 2.0;
        for (size_t j = 0; j < 6; j++) {
            k->f64[j] = j < 4 ? (double)j : INFINITY;
            v->f64[j] = j < 4 ? (double)(4 * j) : NAN;
        }
        hs_test_result *result = hs_test_call_run_well(t, backend);
        cr_expect_eq(result->flag, 0);
        if (i == 0)
            cr_expect(result->outputs[0][0] == 6.0, "mean of 0, 4, 8, 12");
        for (size_t j = 0; i == 1 && j < 6; j++) {
            cr_expect(result->outputs[2][j] == (j < 4 ? 0.5 : 0.0) && !signbit(result->outputs[2][j]));
            cr_expect(result->outputs[1][j] == 0.0);
        }
        hs_test_result_destroy(result);
        hs_test_call_destroy(t);
    }
}
