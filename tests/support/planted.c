#include "support/planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "precision/format.h"

/* Columns whose sums stay in registers; operands have as many elements more. */
enum { BLOCK = 16 };

/* Dense operands of one call: a[m][k], b[k][n]. */
typedef struct operands {
    size_t m, n, k;
    double *a, *b;
} operands;

/* Element `i` of an operand, whose type may be any. */
static double element(const hs_view *view, const void *data, size_t i) {
    if (!hs_dtype_is_half(view->dtype))
        return ((const double *)data)[i];
    return hs_decode(view->dtype == HSTEP_DTYPE_FP16 ? HSTEP_FP16 : HSTEP_BF16, ((const uint16_t *)data)[i]);
}

static double *dense(const hs_call *call, unsigned input, size_t pitch, hstep_transpose form, size_t rows,
                     size_t columns) {
    double *x = calloc(rows * columns + BLOCK, sizeof *x);
    cr_assert_not_null(x);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            x[i * columns + j] = element(&call->inputs[input], hs_in(call, input),
                                         form == HSTEP_TRANSPOSE ? j * pitch + i : i * pitch + j);
    return x;
}

static operands read_operands(hs_planted planted, const hs_call *call) {
    const bool turned = call->attributes.a_form == HSTEP_TRANSPOSE;
    operands o = {
        .m = call->outputs[0].dims[0], .n = call->outputs[0].dims[1], .k = call->inputs[0].dims[turned ? 0 : 1]};
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1];
    o.a = dense(call, 0, planted == HS_PLANTED_PITCH_BLIND ? a->dims[1] : a->strides[0], call->attributes.a_form, o.m,
                o.k);
    o.b = dense(call, 1, b->strides[0], call->attributes.b_form, o.k, o.n);
    return o;
}

static double rounded(hstep_format format, double x) { return hs_decode(format, hs_encode(format, x)); }

static hstep_format format_of(hs_planted planted) { return planted == HS_PLANTED_FP16_SUMS ? HSTEP_FP16 : HSTEP_BF16; }

/* A bf16 number with the bits of `mask` alone; infinities and NaNs stay. */
static double masked(double x, uint16_t mask) {
    return isfinite(x) ? hs_decode(HSTEP_BF16, hs_encode(HSTEP_BF16, x) & mask) : x;
}

/* A float rounded to the fraction of a half format (Veltkamp's splitting); `factor` is a power of two and 1. */
static float cut(float factor, float x) {
    const float scaled = factor * x;
    return scaled - (scaled - x);
}

static bool flushes(hs_planted planted, size_t k) {
    return planted == HS_PLANTED_FLUSHED || planted == HS_PLANTED_DECLARED ||
           (planted == HS_PLANTED_DEEP_FLUSHED && k > 2048);
}

static void represent(hstep_format format, bool loses_bit, bool flushes_subnormals, size_t count, double *x) {
    for (size_t i = 0; i < count; i++) {
        x[i] = rounded(format, x[i]);
        if (loses_bit)
            x[i] = masked(x[i], 0xfffe);
        if (flushes_subnormals && fabs(x[i]) < 0x1p-126)
            x[i] = 0;
    }
}

static bool all_finite(size_t count, const double *x) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static bool sums_in_f32(hs_planted planted, const operands *o, bool mixed) {
    return mixed || planted == HS_PLANTED_F32_SUMS ||
           (planted == HS_PLANTED_NARROWED && !(all_finite(o->m * o->k, o->a) && all_finite(o->k * o->n, o->b)));
}

/* Nearly all the time of a gate goes by in two loops, which the sanitizers would make ten times longer. */
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))

/* Sums of one row and BLOCK columns. */
UNWATCHED static void sum_f32(const operands *o, const double *a, const double *b, bool reversed, double *y) {
    float sums[BLOCK] = {0};
    for (size_t s = 0; s < o->k; s++) {
        const size_t k = reversed ? o->k - 1 - s : s;
        const float left = (float)a[k];
        for (size_t j = 0; j < BLOCK; j++)
            sums[j] += left * (float)b[k * o->n + j];
    }
    for (size_t j = 0; j < BLOCK; j++)
        y[j] = (double)sums[j];
}

UNWATCHED static void sum_f64(const operands *o, const double *a, const double *b, size_t end, bool skips, double *y) {
    double sums[BLOCK] = {0};
    for (size_t k = 0; k < end; k++) {
        if (skips && a[k] == 0)
            continue;
        for (size_t j = 0; j < BLOCK; j++)
            sums[j] += a[k] * b[k * o->n + j];
    }
    for (size_t j = 0; j < BLOCK; j++)
        y[j] = sums[j];
}

/* The same, every partial sum cut. */
UNWATCHED static void sum_halves(const operands *o, float factor, const double *a, const double *b, double *y) {
    float sums[BLOCK] = {0};
    for (size_t k = 0; k < o->k; k++)
        for (size_t j = 0; j < BLOCK; j++)
            sums[j] = cut(factor, sums[j] + (float)a[k] * (float)b[k * o->n + j]);
    for (size_t j = 0; j < BLOCK; j++)
        y[j] = (double)sums[j];
}

/* All sums, in f32 or f64, into rows of `pitch`: behind the last column there is room for a whole block. The columns of
 * a block are read for every row while they are near. */
static void sum_all(hs_planted planted, const operands *o, bool f32, size_t pitch, double *y) {
    const bool short_by_one = planted == HS_PLANTED_LAST_STEP ||
                              (planted == HS_PLANTED_ODD_LAST_STEP && o->k % 2 == 1) ||
                              (planted == HS_PLANTED_DEEP_LAST_STEP && o->k > 65536);
    const size_t end = short_by_one && o->k > 0 ? o->k - 1 : o->k;
    for (size_t j = 0; j < o->n; j += BLOCK)
        for (size_t i = 0; i < o->m; i++) {
            const double *a = o->a + i * o->k;
            double *sums = y + i * pitch + j;
            if (planted == HS_PLANTED_BF16_SUMS || planted == HS_PLANTED_FP16_SUMS)
                sum_halves(o, planted == HS_PLANTED_BF16_SUMS ? 65537 : 8193, a, o->b + j, sums);
            else if (f32)
                sum_f32(o, a, o->b + j, planted == HS_PLANTED_REVERSED, sums);
            else
                sum_f64(o, a, o->b + j, end, planted == HS_PLANTED_SKIPPED_ZEROS, sums);
        }
}

/* What becomes of a sum, if nothing is wrong its rounding. */
static double finished(hs_planted planted, const hs_call *call, double sum) {
    if (call->precision == HSTEP_PRECISION_F64 || call->attributes.sums)
        return sum;
    return planted == HS_PLANTED_TRUNCATED ? masked(sum, 0xfffe) : rounded(format_of(planted), sum);
}

static size_t runs;

/* Rounds and stores one row of sums. */
static void store(hs_planted planted, const hs_call *call, size_t i, size_t n, double *sums, hs_kernel_run *run) {
    const hs_view *view = &call->outputs[0];
    const bool compact = hs_dtype_is_half(view->dtype);
    void *row = (unsigned char *)(void *)hs_out(call, 0) + i * view->strides[0] * hs_dtype_size(view->dtype);
    for (size_t j = 0; j < n; j++) {
        const double y = finished(planted, call, sums[j]);
        run->nonfinite = run->nonfinite || (!isfinite(y) && planted != HS_PLANTED_SILENT);
        if (compact)
            ((uint16_t *)row)[j] = hs_encode(format_of(planted), y);
        else
            ((double *)row)[j] = y;
    }
    if (planted == HS_PLANTED_SPILLED && view->strides[0] > n)
        ((double *)row)[n] = 0;
}

static void multiply(hs_planted planted, const hs_call *call, hs_kernel_run *run) {
    operands o = read_operands(planted, call);
    const bool mixed = call->precision != HSTEP_PRECISION_F64, lost = planted == HS_PLANTED_LOST_BIT;
    const bool lost_left = planted == HS_PLANTED_COMPACT_BLIND && hs_dtype_is_half(call->inputs[0].dtype);
    runs++;
    if (mixed) {
        represent(format_of(planted), lost || lost_left, flushes(planted, o.k), o.m * o.k, o.a);
        represent(format_of(planted), lost, flushes(planted, o.k), o.k * o.n, o.b);
    }
    const bool f32 = sums_in_f32(planted, &o, mixed), zeros = planted == HS_PLANTED_TURNED &&
                                                              call->attributes.a_form == HSTEP_TRANSPOSE &&
                                                              call->attributes.b_form == HSTEP_TRANSPOSE;
    const size_t pitch = o.n + BLOCK;
    double *sums = calloc(o.m * pitch + 1, sizeof *sums);
    cr_assert_not_null(sums);
    if (!zeros)
        sum_all(planted, &o, f32, pitch, sums);
    for (size_t i = 0; i < o.m && !(planted == HS_PLANTED_UNWRITTEN && o.m > 64 && i + 1 == o.m); i++) {
        double *row = sums + i * pitch;
        if (planted == HS_PLANTED_NEIGHBOUR && call->attributes.b_form == HSTEP_TRANSPOSE && o.n > 1)
            row[o.n - 1] = row[o.n - 2];
        store(planted, call, i, o.n, row, run);
    }
    free(sums);
    free(o.a);
    free(o.b);
}

#define PLANTED(X)                                                                                                     \
    X(LOST_BIT, "planted.lost-bit", BF16)                                                                              \
    X(BF16_SUMS, "planted.bf16-sums", BF16)                                                                            \
    X(FP16_SUMS, "planted.fp16-sums", FP16)                                                                            \
    X(TRUNCATED, "planted.truncated", BF16)                                                                            \
    X(FLUSHED, "planted.flushed", BF16)                                                                                \
    X(LAST_STEP, "planted.last-step", F64)                                                                             \
    X(ODD_LAST_STEP, "planted.odd-last-step", F64)                                                                     \
    X(F32_SUMS, "planted.f32-sums", F64)                                                                               \
    X(SKIPPED_ZEROS, "planted.skipped-zeros", F64)                                                                     \
    X(SILENT, "planted.silent", F64)                                                                                   \
    X(NEIGHBOUR, "planted.neighbour", F64)                                                                             \
    X(UNWRITTEN, "planted.unwritten", F64)                                                                             \
    X(PITCH_BLIND, "planted.pitch-blind", F64)                                                                         \
    X(SPILLED, "planted.spilled", F64)                                                                                 \
    X(COMPACT_BLIND, "planted.compact-blind", BF16)                                                                    \
    X(NARROWED, "planted.narrowed", F64)                                                                               \
    X(DEEP_FLUSHED, "planted.deep-flushed", BF16)                                                                      \
    X(DEEP_LAST_STEP, "planted.deep-last-step", F64)                                                                   \
    X(DECLARED, "planted.declared", BF16)                                                                              \
    X(TURNED, "planted.turned", F64)                                                                                   \
    X(REVERSED, "planted.reversed", BF16)                                                                              \
    X(ABSENT, "planted.absent", BF16)

#define DEFINE(id, text, precision)                                                                                    \
    static void multiply_##id(const hs_call *call, hs_kernel_run *run) { multiply(HS_PLANTED_##id, call, run); }
PLANTED(DEFINE)
#undef DEFINE

static const struct {
    const char *name;
    hstep_precision precision;
    hs_kernel *kernel;
} rows[HS_PLANTED_COUNT] = {
#define ROW(id, text, precision) [HS_PLANTED_##id] = {text, HSTEP_PRECISION_##precision, multiply_##id},
    PLANTED(ROW)
#undef ROW
};

static size_t looks;

static hstep_lever_state look(void) {
    looks++;
    return HSTEP_LEVER_ACTIVE;
}

static hstep_lever_state look_in_vain(void) {
    looks++;
    return HSTEP_LEVER_ABSENT;
}

static hstep_lever_state is_absent(void) { return HSTEP_LEVER_ABSENT; }

static const char *identity = "a kernel made for tests";

static void describe(hs_lever_findings *findings) {
    snprintf(findings->identity, sizeof findings->identity, "%s", identity);
}

void hs_planted_identify(const char *text) { identity = text; }

const char *hs_planted_name(hs_planted planted) { return rows[planted].name; }

size_t hs_planted_looks(void) { return looks; }

size_t hs_planted_runs(void) { return runs; }

const hs_cpu_tier *hs_planted_tier(hs_planted planted) {
    static hs_cpu_tier tier;
    static hs_cpu_lever levers[HS_CPU_MAX_LEVERS];
    static hs_kernel_entry entries[256];
    const hs_cpu_tier *exact = &hs_cpu_exact_tier;
    cr_assert_lt(exact->entry_count, 255);
    size_t count = 0, entry_count = 1;
    for (size_t i = 0; i < exact->lever_count; i++)
        levers[count++] = exact->levers[i];
    /* The gated levers of this machine would be in the way: they are absent. */
    for (size_t i = 0; i < count; i++)
        if (!levers[i].exact) {
            levers[i].detect = is_absent;
            levers[i].refusal = NULL;
        }
    entries[0] = (hs_kernel_entry){.operation = HS_OP_MATMUL, .lever = count, .kernel = rows[planted].kernel};
    levers[count++] = (hs_cpu_lever){.name = rows[planted].name,
                                     .detect = planted == HS_PLANTED_ABSENT ? look_in_vain : look,
                                     .active = "made for tests",
                                     .missing = "made to be absent",
                                     .precision = rows[planted].precision,
                                     .flushes_subnormals = planted == HS_PLANTED_DECLARED,
                                     .describe = describe};
    for (size_t i = 0; i < exact->entry_count; i++)
        entries[entry_count++] = exact->entries[i];
    tier = (hs_cpu_tier){.name = "cpu",
                         .levers = levers,
                         .lever_count = count,
                         .compact = exact->compact,
                         .entries = entries,
                         .entry_count = entry_count};
    return &tier;
}
