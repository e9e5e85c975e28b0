/* Levers for programs: docs/levers.md lists the fields. */
#include <math.h>

#include <jansson.h>

#include "trainer/exit.h"
#include "trainer/levers/levers.h"
#include "trainer/report.h"

/* JSON has no infinity: a figure that is not finite is null. */
static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *figures_of(const hstep_gate_case *c) {
    return json_pack("{s:b, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "passed", c->passed, "failed_inputs",
                     c->failed_inputs, "failed_storage", c->failed_storage, "max_abs", real(c->max_abs),
                     "max_abs_limit", real(c->max_abs_limit), "mean_rel", real(c->mean_rel), "mean_rel_limit",
                     real(c->mean_rel_limit), "max_rel", real(c->max_rel), "cells", (json_int_t)c->cells,
                     "cells_beyond", (json_int_t)c->cells_beyond, "cells_wrong", (json_int_t)c->cells_wrong);
}

static json_t *shape_of(size_t m, size_t n, size_t k, hstep_transpose a_form, hstep_transpose b_form) {
    return json_pack("{s:I, s:I, s:I, s:s}", "m", (json_int_t)m, "n", (json_int_t)n, "k", (json_int_t)k, "form",
                     hs_levers_form(a_form, b_form));
}

static json_t *case_of(const hstep_gate_case *c) {
    json_t *object = shape_of(c->m, c->n, c->k, c->a_form, c->b_form), *figures = figures_of(c);
    json_object_update(object, figures);
    json_decref(figures);
    return object;
}

static json_t *timing_of(const hstep_gate_timing *t) {
    json_t *object = shape_of(t->m, t->n, t->k, t->a_form, t->b_form);
    json_object_set_new(object, "exact_seconds", real(t->exact_seconds));
    json_object_set_new(object, "lever_seconds", real(t->lever_seconds));
    json_object_set_new(object, "speed", real(t->speed));
    return object;
}

static json_t *gate_of(const hstep_lever_gate *gate) {
    if (gate == NULL)
        return json_null();
    json_t *cases = json_array(), *timings = json_array();
    for (size_t i = 0; i < gate->case_count; ++i)
        json_array_append_new(cases, case_of(&gate->cases[i]));
    for (size_t i = 0; i < gate->timing_count; ++i)
        json_array_append_new(timings, timing_of(&gate->timings[i]));
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "precision", hstep_precision_name(gate->precision),
                     "flushes_subnormals", gate->flushes_subnormals, "worst", figures_of(&gate->worst), "speed",
                     real(gate->speed), "seconds", real(gate->seconds), "cases", cases, "timings", timings);
}

static json_t *lever_of(const hstep_lever *lever) {
    return json_pack("{s:s, s:b, s:s, s:s, s:o}", "name", lever->name, "exact", lever->exact, "state",
                     hstep_lever_state_name(lever->state), "reason", lever->reason, "gate", gate_of(lever->gate));
}

int hs_levers_print_json(FILE *out, const hstep_context *context, const hstep_lever *only) {
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    json_t *array = json_array();
    for (size_t i = 0; i < count; ++i)
        if (only == NULL || only == &levers[i])
            json_array_append_new(array, lever_of(&levers[i]));
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:i, s:o, s:o}", "schema", "halfstep.levers/1", "backend",
                  hstep_context_backend_name(context), "device", hstep_context_device_name(context), "threads",
                  (int)hstep_context_threads(context), "levers", array, "devices", hs_levers_devices_json());
    if (root == NULL) {
        hs_report("no memory for the levers, or a name that is not UTF-8");
        return HS_EXIT_UNAVAILABLE;
    }
    /* What cannot be written is noticed when standard output is closed. */
    json_dumpf(root, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(root);
    return HS_EXIT_DONE;
}
