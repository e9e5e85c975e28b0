/* The gate metric and the bound of every cell (policy, section 7). */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "precision/format.h"
#include "precision/gate.h"
#include "precision/matmul.h"
#include "precision/random.h"
#include "support/vectors.h"

/* The golden means were added in another order. */
static void expect_close(double got, double want, const char *what) {
    cr_assert(fabs(got - want) <= 1e-12 * fabs(want), "%s is %.17g, not %.17g", what, got, want);
}

static void expect_gate(hs_gate gate, const json_t *want) {
    expect_close(gate.mean_ref, hs_vectors_number(want, "mean_ref"), "mean_ref");
    expect_close(gate.max_abs, hs_vectors_number(want, "max_abs"), "max_abs");
    expect_close(gate.max_abs_limit, hs_vectors_number(want, "max_abs_limit"), "max_abs_limit");
    expect_close(gate.mean_rel, hs_vectors_number(want, "mean_rel"), "mean_rel");
    expect_close(gate.mean_rel_limit, hs_vectors_number(want, "mean_rel_limit"), "mean_rel_limit");
    expect_close(gate.max_rel, hs_vectors_number(want, "max_rel"), "max_rel");
    cr_assert_eq(gate.pass, json_is_true(hs_vectors_member(want, "pass")));
}

Test(gate, agrees_with_the_golden_metrics) {
    json_t *root = hs_vectors_load("metrics.json");
    json_t *cases = hs_vectors_member(root, "gate");
    cr_assert_eq(json_array_size(cases), 5);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *item = json_array_get(cases, i);
        size_t count, same;
        double *f = hs_vectors_doubles(hs_vectors_member(item, "f"), &count);
        double *r = hs_vectors_doubles(hs_vectors_member(item, "r"), &same);
        cr_assert_eq(count, same);
        expect_gate(hs_gate_measure(count, f, r), hs_vectors_member(item, "expect"));
        free(f);
        free(r);
    }
    json_decref(root);
}

typedef struct product {
    size_t m, k, n;
    double *a, *b, *a_stored, *b_stored, *y, *reference;
} product;

static double *room(size_t count) {
    double *data = malloc(count * sizeof *data);
    cr_assert(data != NULL);
    return data;
}

/* What a framework computes in f32: operands rounded to f32, one ascending chain. */
static void multiply_f32(const product *p, const double *a, const double *b) {
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            float sum = 0;
            for (size_t k = 0; k < p->k; k++)
                sum += (float)a[i * p->k + k] * (float)b[k * p->n + j];
            p->reference[i * p->n + j] = (double)sum;
        }
}

static void check_precision(const product *p, hstep_precision precision, const json_t *want) {
    hstep_format format = hs_precision_format(precision);
    for (size_t i = 0; i < p->m * p->k; i++)
        p->a_stored[i] = hs_decode(format, hs_encode(format, p->a[i]));
    for (size_t i = 0; i < p->k * p->n; i++)
        p->b_stored[i] = hs_decode(format, hs_encode(format, p->b[i]));
    hs_policy_matmul(precision, p->m, p->n, p->k, (hs_matrix){p->a, p->k, 1}, (hs_matrix){p->b, p->n, 1}, p->y, p->n,
                     NULL);
    multiply_f32(p, p->a, p->b);
    expect_gate(hs_gate_measure(p->m * p->n, p->y, p->reference),
                hs_vectors_member(want, "vs_f32_of_original_operands"));
    multiply_f32(p, p->a_stored, p->b_stored);
    expect_gate(hs_gate_measure(p->m * p->n, p->y, p->reference),
                hs_vectors_member(want, "vs_f32_of_represented_operands"));
}

/* The random source, the policy product and the metric together: the worked case of the policy, where the rounding of y
 * alone decides the verdict. */
Test(gate, agrees_with_the_golden_products) {
    json_t *root = hs_vectors_load("metrics.json");
    json_t *shapes = hs_vectors_member(hs_vectors_member(root, "gate_of_the_policy_product"), "shapes");
    cr_assert_eq(json_object_size(shapes), 3);
    hs_random random = {39};
    const char *name;
    json_t *want;
    json_object_foreach(shapes, name, want) {
        product p = {0};
        cr_assert_eq(sscanf(name, "%zux%zux%zu", &p.m, &p.k, &p.n), 3);
        p.a = room(p.m * p.k), p.a_stored = room(p.m * p.k);
        p.b = room(p.k * p.n), p.b_stored = room(p.k * p.n);
        p.y = room(p.m * p.n), p.reference = room(p.m * p.n);
        for (size_t i = 0; i < p.m * p.k; i++)
            p.a[i] = (2 * hs_random_uniform(&random) - 1) * 0.2;
        for (size_t i = 0; i < p.k * p.n; i++)
            p.b[i] = (2 * hs_random_uniform(&random) - 1) * 0.2;
        check_precision(&p, HSTEP_PRECISION_FP16, hs_vectors_member(want, "fp16"));
        check_precision(&p, HSTEP_PRECISION_BF16, hs_vectors_member(want, "bf16"));
        free(p.a), free(p.b), free(p.a_stored), free(p.b_stored), free(p.y), free(p.reference);
    }
    json_decref(root);
}

Test(gate, fails_what_cannot_be_judged) {
    const double good[] = {1, -2}, zero[] = {0, -0.0};
    const double nonfinite[] = {INFINITY, -INFINITY, NAN};
    cr_assert(hs_gate_measure(2, good, good).pass);
    cr_assert_not(hs_gate_measure(0, NULL, NULL).pass);
    cr_assert_not(hs_gate_measure(2, zero, zero).pass);
    for (size_t i = 0; i < 3; i++) {
        const double bad[] = {1, nonfinite[i]};
        cr_assert_not(hs_gate_measure(2, bad, good).pass);
        cr_assert_not(hs_gate_measure(2, good, bad).pass);
        cr_assert_not(hs_gate_measure(2, bad, bad).pass);
    }
}

Test(gate, fails_each_limit_by_itself) {
    double f[1000], r[1000];
    for (size_t i = 0; i < 1000; i++)
        r[i] = i % 2 == 0 ? 1 : -1;
    /* Everything off by 0.6%: only the mean breaks. */
    for (size_t i = 0; i < 1000; i++)
        f[i] = r[i] * 1.006;
    hs_gate gate = hs_gate_measure(1000, f, r);
    cr_assert(!gate.pass && gate.max_abs < gate.max_abs_limit && gate.mean_rel > 0.005);
    for (size_t i = 0; i < 1000; i++)
        f[i] = r[i] * 1.004;
    cr_assert(hs_gate_measure(1000, f, r).pass);
    /* One cell off by 2%: only the largest breaks. */
    for (size_t i = 0; i < 1000; i++)
        f[i] = r[i];
    f[999] *= 1.02;
    gate = hs_gate_measure(1000, f, r);
    cr_assert(!gate.pass && gate.max_abs > gate.max_abs_limit && gate.mean_rel < 0.005);
}

Test(gate, bounds_every_cell) {
    const double step = 0x1p-23, r[] = {1, 0, 4}, magnitude[] = {2, 0, 8};
    double f[] = {1 + 2 * 10 * step, 0, 4 - 8 * 10 * step};
    cr_assert_eq(hs_gate_cells(3, f, r, magnitude, 10, step), 0);
    cr_assert_eq(hs_gate_cells(3, f, r, magnitude, 9, step), 2);
    f[1] = 0x1p-149;
    f[0] = nextafter(f[0], 2);
    cr_assert_eq(hs_gate_cells(3, f, r, magnitude, 10, step), 2);
    f[2] = NAN;
    cr_assert_eq(hs_gate_cells(3, f, r, magnitude, 10, step), 3);
    cr_assert_eq(hs_gate_cells(0, NULL, NULL, NULL, 10, step), 0);
    const double one = 1 + 0x1p-52, unit = 1;
    cr_assert_eq(hs_gate_cells(1, &one, &unit, &unit, 1, 0x1p-52), 0);
}
