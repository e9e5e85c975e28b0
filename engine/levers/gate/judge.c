#include "engine/levers/gate/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "precision/format.h"
#include "precision/gate.h"
#include "precision/matmul.h"

static double larger(double a, double b) { return a > b ? a : b; }

/* How much of a limit a figure uses up; what is not finite uses up all. */
static double share(double figure, double limit) {
    const double s = figure / limit;
    return isfinite(s) ? s : (figure == 0 ? 0 : (double)INFINITY);
}

void hs_gate_widen_metrics(hstep_gate_case *worst, const hstep_gate_case *one) {
    if (worst->max_abs_limit == 0 ||
        share(one->max_abs, one->max_abs_limit) > share(worst->max_abs, worst->max_abs_limit)) {
        worst->max_abs = one->max_abs;
        worst->max_abs_limit = one->max_abs_limit;
    }
    worst->mean_rel = larger(worst->mean_rel, one->mean_rel);
    worst->mean_rel_limit = one->mean_rel_limit;
    worst->max_rel = larger(worst->max_rel, one->max_rel);
}

/* Whether a result is the sum rounded once. */
static bool is_rounded(hstep_precision precision, double sum, double result) {
    const double expected = hs_precision_round(precision, sum);
    return memcmp(&expected, &result, sizeof expected) == 0 || (isnan(expected) && isnan(result));
}

/* Cells that have a bound of their own, and how many lie beyond it. A reference that is not finite bounds nothing. */
static size_t judge_cells(const hs_candidate *of, hstep_gate_case *c) {
    const double step = of->precision == HSTEP_PRECISION_F64 ? 0x1p-52 : 0x1p-23;
    size_t beyond = 0;
    for (size_t i = 0; i < of->count; i++)
        if (isfinite(of->reference[i])) {
            c->cells++;
            beyond += hs_gate_cells(1, &of->sums[i], &of->reference[i], &of->magnitudes[i], of->k, step);
        }
    return beyond;
}

bool hs_gate_judge(const hs_candidate *candidate, bool metrics, hstep_gate_case *c) {
    const hs_candidate *of = candidate;
    size_t wrong = 0;
    for (size_t i = 0; i < of->count; i++) {
        wrong += isfinite(of->sums[i]) != isfinite(of->reference[i]);
        wrong += of->results != NULL && !is_rounded(of->precision, of->sums[i], of->results[i]);
    }
    const size_t beyond = judge_cells(of, c);
    bool passed = wrong == 0 && beyond == 0;
    if (metrics) {
        const hs_gate g = hs_gate_measure(of->count, of->sums, of->reference);
        const hstep_gate_case figures = {.max_abs = g.max_abs,
                                         .max_abs_limit = g.max_abs_limit,
                                         .mean_rel = g.mean_rel,
                                         .mean_rel_limit = g.mean_rel_limit,
                                         .max_rel = g.max_rel};
        hs_gate_widen_metrics(c, &figures);
        passed = passed && g.pass;
    }
    c->cells_wrong += wrong;
    c->cells_beyond += beyond;
    return passed;
}

/* ---- For programs ---- */

typedef struct product {
    double *a, *b, *reference, *magnitudes; /* operands as they are represented, dense */
} product;

/* to[rows][columns] of x in either form, rounded as an operand. */
static void represent(hstep_precision precision, size_t rows, size_t columns, hstep_transpose form, const double *x,
                      double *to) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            const double value = form == HSTEP_TRANSPOSE ? x[j * rows + i] : x[i * columns + j];
            to[i * columns + j] = hs_precision_round(precision, value);
        }
}

static hstep_status check(const hstep_gate_case *c, hstep_precision precision, const double *a, const double *b,
                          const double *sums, hstep_error *error) {
    size_t a_count = 0, b_count = 0, count = 0;
    HS_RETURN_IF((unsigned)precision > HSTEP_PRECISION_BF16, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_gate: unknown precision %d", (int)precision);
    HS_RETURN_IF((unsigned)c->a_form > 1 || (unsigned)c->b_form > 1, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_gate: unknown form of an operand");
    HS_RETURN_IF(__builtin_mul_overflow(c->m, c->k, &a_count) || __builtin_mul_overflow(c->k, c->n, &b_count) ||
                     __builtin_mul_overflow(c->m, c->n, &count) || a_count > SIZE_MAX / 16 || b_count > SIZE_MAX / 16 ||
                     count > SIZE_MAX / 16,
                 error, HSTEP_ERROR_SHAPE, "hstep_gate: %zu x %zu x %zu is more than memory can hold", c->m, c->n,
                 c->k);
    HS_RETURN_IF((a == NULL && a_count != 0) || (b == NULL && b_count != 0) || (sums == NULL && count != 0), error,
                 HSTEP_ERROR_ARGUMENT, "hstep_gate: a matrix is missing");
    return HSTEP_OK;
}

hstep_status hstep_gate(hstep_precision precision, hstep_transpose a_form, hstep_transpose b_form, size_t m, size_t n,
                        size_t k, const double *a, const double *b, const double *sums, const double *results,
                        hstep_gate_case *judged, hstep_error *error) {
    hstep_gate_case c = {.m = m, .n = n, .k = k, .a_form = a_form, .b_form = b_form};
    HS_RETURN_IF(judged == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_gate needs a place for the figures");
    HS_FORWARD(check(&c, precision, a, b, sums, error));
    const product p = {.a = malloc((m * k + 1) * sizeof(double)),
                       .b = malloc((k * n + 1) * sizeof(double)),
                       .reference = malloc((m * n + 1) * sizeof(double)),
                       .magnitudes = malloc((m * n + 1) * sizeof(double))};
    const bool there = p.a != NULL && p.b != NULL && p.reference != NULL && p.magnitudes != NULL;
    if (there) {
        represent(precision, m, k, a_form, a, p.a);
        represent(precision, k, n, b_form, b, p.b);
        hs_policy_sums(precision, m, n, k, p.a, p.b, p.reference, p.magnitudes);
        const hs_candidate candidate = {precision, m * n, k, p.reference, p.magnitudes, sums, results};
        c.passed = hs_gate_judge(&candidate, true, &c);
        *judged = c;
    }
    free(p.a);
    free(p.b);
    free(p.reference);
    free(p.magnitudes);
    return there ? HSTEP_OK : hs_fail_memory(error, "the judgement of a product");
}
