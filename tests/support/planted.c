#include "support/planted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "precision/format.h"

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

static double *dense(const hs_call *call, unsigned input, hstep_transpose form, size_t rows, size_t columns) {
    const size_t pitch = call->inputs[input].strides[0];
    double *x = malloc((rows * columns + 1) * sizeof *x);
    cr_assert_not_null(x);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            x[i * columns + j] = element(&call->inputs[input], hs_in(call, input),
                                         form == HSTEP_TRANSPOSE ? j * pitch + i : i * pitch + j);
    return x;
}

static operands read_operands(const hs_call *call) {
    const bool turned = call->attributes.a_form == HSTEP_TRANSPOSE;
    operands o = {
        .m = call->outputs[0].dims[0], .n = call->outputs[0].dims[1], .k = call->inputs[0].dims[turned ? 0 : 1]};
    o.a = dense(call, 0, call->attributes.a_form, o.m, o.k);
    o.b = dense(call, 1, call->attributes.b_form, o.k, o.n);
    return o;
}

static double rounded(double x) { return hs_decode(HSTEP_BF16, hs_encode(HSTEP_BF16, x)); }

/* A bf16 number with the bits of `mask` alone; infinities and NaNs stay. */
static double masked(double x, uint16_t mask) {
    return isfinite(x) ? hs_decode(HSTEP_BF16, hs_encode(HSTEP_BF16, x) & mask) : x;
}

/* A float without what a bf16 has no room for. */
static float cut(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= isfinite(x) ? 0xffff0000 : 0xffffffff;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static void represent(hs_planted planted, size_t count, double *x) {
    for (size_t i = 0; i < count; i++) {
        x[i] = rounded(x[i]);
        if (planted == HS_PLANTED_LOST_BIT)
            x[i] = masked(x[i], 0xfffe);
        if (planted == HS_PLANTED_FLUSHED && fabs(x[i]) < 0x1p-126)
            x[i] = 0;
    }
}

/* Nearly all the time of a gate goes by in two loops, which the sanitizers would make ten times longer. */
#define UNWATCHED __attribute__((no_sanitize("address", "undefined")))

/* The sums of one row in f32. */
UNWATCHED static void row_f32(hs_planted planted, const operands *o, size_t i, double *y) {
    float *sums = calloc(o->n + 1, sizeof *sums);
    cr_assert_not_null(sums);
    for (size_t s = 0; s < o->k; s++) {
        const size_t k = planted == HS_PLANTED_REVERSED ? o->k - 1 - s : s;
        const float a = (float)o->a[i * o->k + k];
        for (size_t j = 0; j < o->n; j++)
            sums[j] += a * (float)o->b[k * o->n + j];
        for (size_t j = 0; j < o->n && planted == HS_PLANTED_BF16_SUMS; j++)
            sums[j] = cut(sums[j]);
    }
    for (size_t j = 0; j < o->n; j++)
        y[j] = (double)sums[j];
    free(sums);
}

UNWATCHED static void row_f64(hs_planted planted, const operands *o, size_t i, double *y) {
    const size_t end = planted == HS_PLANTED_LAST_STEP ? o->k - (o->k > 0) : o->k;
    for (size_t j = 0; j < o->n; j++)
        y[j] = 0;
    for (size_t k = 0; k < end; k++)
        for (size_t j = 0; j < o->n && (planted != HS_PLANTED_SKIPPED_ZEROS || o->a[i * o->k + k] != 0); j++)
            y[j] += o->a[i * o->k + k] * o->b[k * o->n + j];
}

/* What becomes of a sum, if nothing is wrong its rounding. */
static double finished(hs_planted planted, const hs_call *call, double sum) {
    if (call->precision == HSTEP_PRECISION_F64 || call->attributes.sums)
        return sum;
    return planted == HS_PLANTED_TRUNCATED ? masked(sum, 0xfffe) : rounded(sum);
}

static void multiply(hs_planted planted, const hs_call *call, hs_kernel_run *run) {
    operands o = read_operands(call);
    const bool mixed = call->precision != HSTEP_PRECISION_F64;
    if (mixed) {
        represent(planted, o.m * o.k, o.a);
        represent(planted, o.k * o.n, o.b);
    }
    const hs_view *view = &call->outputs[0];
    double *room = calloc(o.n + 1, sizeof *room);
    cr_assert_not_null(room);
    for (size_t i = 0; i < o.m && !(planted == HS_PLANTED_UNWRITTEN && o.m > 64 && i + 1 == o.m); i++) {
        const bool compact = hs_dtype_is_half(view->dtype);
        double *y = compact ? room : hs_out(call, 0) + i * view->strides[0];
        (mixed || planted == HS_PLANTED_F32_SUMS ? row_f32 : row_f64)(planted, &o, i, y);
        if (planted == HS_PLANTED_NEIGHBOUR && call->attributes.b_form == HSTEP_TRANSPOSE && o.n > 1)
            y[o.n - 1] = y[o.n - 2];
        for (size_t j = 0; j < o.n; j++) {
            y[j] = finished(planted, call, y[j]);
            run->nonfinite = run->nonfinite || (!isfinite(y[j]) && planted != HS_PLANTED_SILENT);
            if (compact)
                ((uint16_t *)(void *)hs_out(call, 0))[i * view->strides[0] + j] = hs_encode(HSTEP_BF16, y[j]);
        }
    }
    free(room);
    free(o.a);
    free(o.b);
}

#define PLANTED(X)                                                                                                     \
    X(LOST_BIT, "planted.lost-bit", BF16)                                                                              \
    X(BF16_SUMS, "planted.bf16-sums", BF16)                                                                            \
    X(TRUNCATED, "planted.truncated", BF16)                                                                            \
    X(FLUSHED, "planted.flushed", BF16)                                                                                \
    X(LAST_STEP, "planted.last-step", F64)                                                                             \
    X(F32_SUMS, "planted.f32-sums", F64)                                                                               \
    X(SKIPPED_ZEROS, "planted.skipped-zeros", F64)                                                                     \
    X(SILENT, "planted.silent", F64)                                                                                   \
    X(NEIGHBOUR, "planted.neighbour", F64)                                                                             \
    X(UNWRITTEN, "planted.unwritten", F64)                                                                             \
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

static void describe(hs_lever_findings *findings) {
    snprintf(findings->identity, sizeof findings->identity, "a kernel made for tests");
}

const char *hs_planted_name(hs_planted planted) { return rows[planted].name; }

size_t hs_planted_looks(void) { return looks; }

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
        if (!levers[i].exact)
            levers[i].detect = is_absent;
    entries[0] = (hs_kernel_entry){.operation = HS_OP_MATMUL, .lever = count, .kernel = rows[planted].kernel};
    levers[count++] = (hs_cpu_lever){.name = rows[planted].name,
                                     .detect = planted == HS_PLANTED_ABSENT ? look_in_vain : look,
                                     .active = "made for tests",
                                     .missing = "made to be absent",
                                     .precision = rows[planted].precision,
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
