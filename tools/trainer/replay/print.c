#include "trainer/replay/print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/report.h"

static const char *dtype_name(hstep_dtype dtype) {
    static const char *const names[] = {
        [HSTEP_DTYPE_F64] = "f64", [HSTEP_DTYPE_I32] = "i32", [HSTEP_DTYPE_FP16] = "fp16", [HSTEP_DTYPE_BF16] = "bf16"};
    return names[dtype];
}

bool hs_replay_agrees(const hs_attempt *attempt, const hstep_explanation *found) {
    const hstep_overflow *then = &attempt->overflow, *now = &found->overflow;
    return found->overflowed && strcmp(then->operation, now->operation) == 0 &&
           strcmp(then->tensor, now->tensor) == 0 && strcmp(then->phase, now->phase) == 0 &&
           strcmp(then->kind, now->kind) == 0 && then->index == now->index;
}

/* ---- For people ---- */

static void print_overflow(FILE *out, const char *heading, const hstep_overflow *overflow) {
    fprintf(out, "%-10s%s in operation %s, tensor %s, index %" PRIu64 ", phase %s\n", heading, overflow->kind,
            overflow->operation, overflow->tensor, overflow->index, overflow->phase);
}

static void print_place(FILE *out, const hs_attempt *attempt, const hstep_explanation *found) {
    const uint64_t micro_batches = attempt->options.micro_batches;
    if (found->batch < attempt->window_count)
        fprintf(out, "%-10smicro-batch %" PRIu64 " of %" PRIu64 ", replica %" PRIu64 " of %" PRIu64 "\n", "in",
                found->batch % micro_batches + 1, micro_batches, found->batch / micro_batches + 1,
                attempt->options.replicas);
    fprintf(out, "%-10s%s, precision %s\n", "kind", found->operation, hstep_precision_name(found->precision));
}

static void print_operand(FILE *out, const hstep_operand *o, hstep_precision precision) {
    fprintf(out, "\n%s %s%s: ", o->is_output ? "writes" : "reads", o->is_adjoint ? "the adjoint of " : "", o->name);
    for (size_t d = 0; d < o->rank; ++d)
        fprintf(out, "%s%zu", d == 0 ? "" : " x ", o->dims[d]);
    fprintf(out, ", %s\n  magnitudes: smallest above 0 %.6g, mean %.6g, largest %.6g\n", dtype_name(o->dtype),
            o->smallest, o->mean, o->largest);
    fprintf(out, "  of %" PRIu64 " numbers: zero %" PRIu64 ", infinite %" PRIu64 ", NaN %" PRIu64 "\n", o->elements,
            o->zeros, o->infinities, o->nans);
    if (precision != HSTEP_PRECISION_F64 && o->dtype != HSTEP_DTYPE_I32)
        fprintf(out, "  rounded to %s: to zero %" PRIu64 ", to subnormal %" PRIu64 ", to infinity %" PRIu64 "\n",
                precision == HSTEP_PRECISION_FP16 ? "fp16" : "bf16", o->to_zero, o->to_subnormal, o->to_infinity);
}

void hs_replay_print(FILE *out, const hs_attempt *attempt, const hstep_explanation *found) {
    fprintf(out, "%-10sattempt %" PRIu64 " at step %" PRIu64 ", loss scale %s\n", "kept", attempt->attempt,
            attempt->step, hs_digits_of(attempt->loss_scale).text);
    print_overflow(out, "recorded", &attempt->overflow);
    if (!found->overflowed) {
        fprintf(out, "%-10severy adjoint is finite\n", "replayed");
        return;
    }
    if (hs_replay_agrees(attempt, found))
        fprintf(out, "%-10sthe same\n", "replayed");
    else
        print_overflow(out, "replayed", &found->overflow);
    print_place(out, attempt, found);
    for (size_t i = 0; i < found->operand_count; ++i)
        print_operand(out, &found->operands[i], found->precision);
}

/* ---- For programs ---- */

static json_t *overflow_as_json(const hstep_overflow *overflow) {
    return json_pack("{s:s, s:s, s:s, s:s, s:I}", "operation", overflow->operation, "tensor", overflow->tensor, "phase",
                     overflow->phase, "kind", overflow->kind, "index", (json_int_t)overflow->index);
}

static json_t *operand_as_json(const hstep_operand *o) {
    json_t *shape = json_array();
    for (size_t d = 0; d < o->rank; ++d)
        json_array_append_new(shape, json_integer((json_int_t)o->dims[d]));
    return json_pack("{s:s, s:b, s:b, s:s, s:o, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "name", o->name,
                     "output", o->is_output, "adjoint", o->is_adjoint, "dtype", dtype_name(o->dtype), "shape", shape,
                     "elements", (json_int_t)o->elements, "smallest", o->smallest, "largest", o->largest, "mean",
                     o->mean, "zeros", (json_int_t)o->zeros, "to_zero", (json_int_t)o->to_zero, "to_subnormal",
                     (json_int_t)o->to_subnormal, "to_infinity", (json_int_t)o->to_infinity, "infinities",
                     (json_int_t)o->infinities, "nans", (json_int_t)o->nans);
}

/* What was found beside the overflow itself; null where nothing was. */
static json_t *explanation_as_json(const hs_attempt *attempt, const hstep_explanation *found) {
    if (!found->overflowed)
        return json_null();
    json_t *operands = json_array();
    for (size_t i = 0; i < found->operand_count; ++i)
        json_array_append_new(operands, operand_as_json(&found->operands[i]));
    json_t *batch = found->batch < attempt->window_count ? json_integer((json_int_t)found->batch) : json_null();
    return json_pack("{s:s, s:s, s:o, s:o}", "kind", found->operation, "precision",
                     hstep_precision_name(found->precision), "batch", batch, "operands", operands);
}

int hs_replay_print_json(FILE *out, const hs_attempt *attempt, const hstep_explanation *found) {
    json_t *replayed = found->overflowed ? overflow_as_json(&found->overflow) : json_null();
    json_t *root = json_pack("{s:s, s:I, s:I, s:f, s:s, s:I, s:o, s:o, s:b, s:o}", "schema", "halfstep.replay/1",
                             "step", (json_int_t)attempt->step, "attempt", (json_int_t)attempt->attempt, "loss_scale",
                             attempt->loss_scale, "backend", hstep_context_backend_name(attempt->context), "threads",
                             (json_int_t)hstep_context_threads(attempt->context), "recorded",
                             overflow_as_json(&attempt->overflow), "replayed", replayed, "same",
                             hs_replay_agrees(attempt, found), "explanation", explanation_as_json(attempt, found));
    if (root == NULL)
        return hs_report_no_memory();
    const int written = json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    if (written == 0 && fputc('\n', out) != EOF)
        return HS_EXIT_DONE;
    hs_report("standard output could not be written: see whether its disk is full");
    return HS_EXIT_OUTPUT;
}
