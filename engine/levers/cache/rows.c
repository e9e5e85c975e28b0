#include "engine/levers/cache/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/levers/gate/gate.h"
#include "engine/levers/gate/inputs.h"
#include "engine/levers/gate/product.h"
#include "engine/levers/gate/trial.h"

/* Figures of a broken lever may be infinite, which JSON cannot say: null. */
static json_t *real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *pack_case(const hstep_gate_case *c) {
    return json_pack("{s:I, s:I, s:I, s:i, s:i, s:b, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "m",
                     (json_int_t)c->m, "n", (json_int_t)c->n, "k", (json_int_t)c->k, "a_form", (int)c->a_form, "b_form",
                     (int)c->b_form, "passed", c->passed, "failed_inputs", c->failed_inputs, "failed_storage",
                     c->failed_storage, "max_abs", real(c->max_abs), "max_abs_limit", real(c->max_abs_limit),
                     "mean_rel", real(c->mean_rel), "mean_rel_limit", real(c->mean_rel_limit), "max_rel",
                     real(c->max_rel), "cells", (json_int_t)c->cells, "cells_beyond", (json_int_t)c->cells_beyond,
                     "cells_wrong", (json_int_t)c->cells_wrong);
}

static json_t *pack_timing(const hstep_gate_timing *t) {
    return json_pack("{s:I, s:I, s:I, s:i, s:i, s:o, s:o, s:o}", "m", (json_int_t)t->m, "n", (json_int_t)t->n, "k",
                     (json_int_t)t->k, "a_form", (int)t->a_form, "b_form", (int)t->b_form, "exact_seconds",
                     real(t->exact_seconds), "lever_seconds", real(t->lever_seconds), "speed", real(t->speed));
}

json_t *hs_cache_pack(const hs_verdict *verdict) {
    const hstep_lever_gate *gate = &verdict->gate;
    json_t *cases = json_array(), *timings = json_array();
    bool whole = true;
    for (size_t i = 0; i < gate->case_count; i++)
        whole = json_array_append_new(cases, pack_case(&gate->cases[i])) == 0 && whole;
    for (size_t i = 0; i < gate->timing_count; i++)
        whole = json_array_append_new(timings, pack_timing(&gate->timings[i])) == 0 && whole;
    json_t *object = json_pack("{s:i, s:i, s:o, s:o, s:o, s:o}", "precision", (int)gate->precision,
                               "flushes_subnormals", gate->flushes_subnormals != 0, "speed", real(gate->speed),
                               "seconds", real(gate->seconds), "cases", cases, "timings", timings);
    if (whole)
        return object;
    json_decref(object);
    return NULL;
}

typedef struct reader {
    const json_t *object;
    bool good;
} reader;

static size_t read_count(reader *r, const char *name, json_int_t most) {
    const json_t *value = json_object_get(r->object, name);
    const json_int_t count = json_integer_value(value);
    r->good = r->good && json_is_integer(value) && count >= 0 && count <= most;
    return r->good ? (size_t)count : 0;
}

static double read_real(reader *r, const char *name) {
    const json_t *value = json_object_get(r->object, name);
    r->good = r->good && (json_is_number(value) || json_is_null(value));
    return json_is_number(value) ? json_number_value(value) : (double)INFINITY;
}

/* One of `count` constants, or NULL for null. */
static const char *read_name(reader *r, const char *name, const char *(*constant)(size_t i), size_t count) {
    const json_t *value = json_object_get(r->object, name);
    for (size_t i = 0; i < count && json_is_string(value); i++)
        if (strcmp(json_string_value(value), constant(i)) == 0)
            return constant(i);
    r->good = r->good && json_is_null(value);
    return NULL;
}

static const char *inputs_name(size_t i) { return hs_inputs_name((hs_inputs)i); }

static const char *storage_name(size_t i) { return hs_storages[i].name; }

#define MANY ((json_int_t)1 << 48)
enum { MOST_ROWS = 65536 };

/* Whether what a case says of itself follows from its figures. */
static bool is_sound(const hstep_gate_case *c) {
    return c->m > 0 && c->m < MOST_ROWS && c->n > 0 && c->n < MOST_ROWS && c->k > 0 &&
           !(c->a_form == HSTEP_TRANSPOSE && c->b_form == HSTEP_TRANSPOSE) && c->passed == hs_gate_within(c) &&
           c->passed == (c->failed_inputs == NULL) && c->passed == (c->failed_storage == NULL) &&
           isfinite(c->max_abs_limit) && c->mean_rel_limit == 0.005 && c->max_abs >= 0 && c->mean_rel >= 0 &&
           c->cells_beyond <= c->cells;
}

static bool unpack_case(const json_t *object, hstep_gate_case *c) {
    reader r = {object, json_is_object(object) && json_is_boolean(json_object_get(object, "passed"))};
    *c = (hstep_gate_case){.m = read_count(&r, "m", MANY),
                           .n = read_count(&r, "n", MANY),
                           .k = read_count(&r, "k", MANY),
                           .a_form = (hstep_transpose)read_count(&r, "a_form", 1),
                           .b_form = (hstep_transpose)read_count(&r, "b_form", 1),
                           .passed = json_is_true(json_object_get(object, "passed")),
                           .failed_inputs = read_name(&r, "failed_inputs", inputs_name, HS_INPUTS_COUNT),
                           .failed_storage = read_name(&r, "failed_storage", storage_name, HS_STORAGES),
                           .max_abs = read_real(&r, "max_abs"),
                           .max_abs_limit = read_real(&r, "max_abs_limit"),
                           .mean_rel = read_real(&r, "mean_rel"),
                           .mean_rel_limit = read_real(&r, "mean_rel_limit"),
                           .max_rel = read_real(&r, "max_rel"),
                           .cells = read_count(&r, "cells", MANY),
                           .cells_beyond = read_count(&r, "cells_beyond", MANY),
                           .cells_wrong = read_count(&r, "cells_wrong", MANY)};
    return r.good && is_sound(c);
}

static bool unpack_timing(const json_t *object, hstep_gate_timing *t) {
    reader r = {object, json_is_object(object)};
    *t = (hstep_gate_timing){.m = read_count(&r, "m", MANY),
                             .n = read_count(&r, "n", MANY),
                             .k = read_count(&r, "k", MANY),
                             .a_form = (hstep_transpose)read_count(&r, "a_form", 1),
                             .b_form = (hstep_transpose)read_count(&r, "b_form", 1),
                             .exact_seconds = read_real(&r, "exact_seconds"),
                             .lever_seconds = read_real(&r, "lever_seconds"),
                             .speed = read_real(&r, "speed")};
    return r.good && isfinite(t->exact_seconds) && t->exact_seconds > 0 && isfinite(t->lever_seconds) &&
           t->lever_seconds > 0 && isfinite(t->speed) && t->speed > 0;
}

static bool is_same_case(const hstep_gate_case *a, const hstep_gate_case *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && a->a_form == b->a_form && a->b_form == b->b_form;
}

/* A lever that passed was judged with all inputs. In all but one every cell has a bound of its own. */
static bool is_complete(const hs_verdict *verdict) {
    for (size_t i = 0; i < verdict->gate.case_count; i++) {
        const hstep_gate_case *c = &verdict->cases[i];
        if (c->cells < c->m * c->n * (HS_INPUTS_COUNT - 1))
            return false;
    }
    return verdict->gate.timing_count == HS_GATE_TIMINGS;
}

static bool unpack_rows(const json_t *cases, const json_t *timings, hs_verdict *verdict) {
    const size_t case_count = json_array_size(cases), timing_count = json_array_size(timings);
    verdict->cases = calloc(case_count + 1, sizeof *verdict->cases);
    verdict->timings = calloc(timing_count + 1, sizeof *verdict->timings);
    if (verdict->cases == NULL || verdict->timings == NULL)
        return false;
    for (size_t i = 0; i < case_count; i++) {
        if (!unpack_case(json_array_get(cases, i), &verdict->cases[i]))
            return false;
        for (size_t j = 0; j < i; j++)
            if (is_same_case(&verdict->cases[i], &verdict->cases[j]))
                return false;
    }
    for (size_t i = 0; i < timing_count; i++)
        if (!unpack_timing(json_array_get(timings, i), &verdict->timings[i]))
            return false;
    verdict->gate.case_count = case_count;
    verdict->gate.timing_count = timing_count;
    hs_gate_summarise(verdict);
    return case_count > 0 && (verdict->gate.worst.passed ? is_complete(verdict) : timing_count == 0);
}

bool hs_cache_unpack(const json_t *object, hs_verdict *verdict) {
    reader r = {object, json_is_object(object)};
    *verdict = (hs_verdict){.gate = {.precision = (hstep_precision)read_count(&r, "precision", HSTEP_PRECISION_BF16),
                                     .flushes_subnormals = (int)read_count(&r, "flushes_subnormals", 1),
                                     .seconds = read_real(&r, "seconds"),
                                     .from_cache = 1}};
    const double speed = read_real(&r, "speed");
    if (r.good && unpack_rows(json_object_get(object, "cases"), json_object_get(object, "timings"), verdict) &&
        isfinite(verdict->gate.seconds) && isfinite(speed) && fabs(speed - verdict->gate.speed) <= 1e-9 * speed)
        return true;
    hs_verdict_free(verdict);
    return false;
}
