#include "engine/levers/gate/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/levers/gate/product.h"
#include "engine/levers/gate/trial.h"

/* At each depth M and N are these; some depths are judged whatever comes. The other shapes end tiles at every place. */
enum { ROWS = 64, COLUMNS = 128, FIXED = 10 };
static const hs_shape fixed[FIXED] = {
    {ROWS, COLUMNS, 128, false}, {ROWS, COLUMNS, 256, false}, {ROWS, COLUMNS, 1024, false}, {1, 1, 1, false},
    {1, 128, 256, false},        {65, 1, 129, false},         {63, 127, 255, false},        {7, 9, 130, false},
    {17, 33, 96, false},         {66, 130, 257, false}};

void hs_gate_summarise(hs_verdict *verdict) {
    hstep_lever_gate *gate = &verdict->gate;
    gate->worst = (hstep_gate_case){.passed = 1};
    for (size_t i = 0; i < gate->case_count; i++)
        hs_gate_widen(&gate->worst, &verdict->cases[i]);
    double ratios = 0;
    for (size_t i = 0; i < gate->timing_count; i++)
        ratios += log(verdict->timings[i].speed);
    gate->speed = gate->timing_count > 0 ? exp(ratios / (double)gate->timing_count) : 0;
    gate->cases = verdict->cases;
    gate->timings = verdict->timings;
}

/* Whether a shape was judged in every orientation, of which a verdict has each once at most. */
static bool is_judged(const hs_verdict *verdict, const hs_shape *shape) {
    size_t forms = 0;
    for (size_t i = 0; i < verdict->gate.case_count; i++) {
        const hstep_gate_case *c = &verdict->cases[i];
        forms += c->m == shape->m && c->n == shape->n && c->k == shape->k;
    }
    return forms == HS_FORMS;
}

static bool has_failed(const hs_verdict *verdict) {
    for (size_t i = 0; i < verdict->gate.case_count; i++)
        if (!verdict->cases[i].passed)
            return true;
    return false;
}

/* Judges a shape where that was not done yet, and may still change the verdict. There is room for its cases. */
static hstep_status judge_shape(hs_backend *backend, const hs_lever_facts *facts, const hs_shape *shape,
                                hs_verdict *verdict, bool *measured, hstep_error *error) {
    if (is_judged(verdict, shape) || has_failed(verdict))
        return HSTEP_OK;
    HS_FORWARD(hs_trial(backend, facts, shape, verdict->cases + verdict->gate.case_count, error));
    verdict->gate.case_count += HS_FORMS;
    *measured = true;
    return HSTEP_OK;
}

static hstep_status judge_all(hs_backend *backend, const hs_lever_facts *facts, const hs_depths *depths,
                              hs_verdict *verdict, bool *measured, hstep_error *error) {
    const size_t most = verdict->gate.case_count + (FIXED + depths->count) * HS_FORMS;
    hstep_gate_case *cases = realloc(verdict->cases, most * sizeof *cases);
    if (cases == NULL)
        return hs_fail_memory(error, "the gate of a lever");
    verdict->cases = cases;
    for (size_t i = 0; i < FIXED; i++)
        HS_FORWARD(judge_shape(backend, facts, &fixed[i], verdict, measured, error));
    for (size_t i = 0; i < depths->count; i++) {
        const hs_shape deep = {ROWS, COLUMNS, depths->k[i], true};
        HS_FORWARD(judge_shape(backend, facts, &deep, verdict, measured, error));
    }
    return HSTEP_OK;
}

/* What is wrong is not timed, and loses the times that it had. */
static hstep_status time_if_right(hs_backend *backend, size_t lever, const hs_lever_facts *facts, hs_verdict *verdict,
                                  bool *measured, hstep_error *error) {
    hs_gate_summarise(verdict);
    if (!verdict->gate.worst.passed) {
        verdict->gate.timing_count = 0;
    } else if (verdict->gate.timing_count == 0) {
        HS_FORWARD(hs_gate_time(backend, lever, facts->precision, verdict, error));
        *measured = true;
    }
    hs_gate_summarise(verdict);
    return HSTEP_OK;
}

hstep_status hs_gate_hold(hs_backend *backend, size_t lever, const hs_lever_facts *facts, const hs_depths *depths,
                          hs_verdict *verdict, bool *measured, hstep_error *error) {
    *measured = false;
    verdict->gate.precision = facts->precision;
    verdict->gate.flushes_subnormals = facts->flushes_subnormals;
    backend->api->lever_set(backend, lever, HSTEP_LEVER_ACTIVE, "being judged");
    hstep_status status = judge_all(backend, facts, depths, verdict, measured, error);
    if (status == HSTEP_OK)
        status = time_if_right(backend, lever, facts, verdict, measured, error);
    backend->api->lever_set(backend, lever, HSTEP_LEVER_DISABLED, "judged");
    if (status != HSTEP_OK)
        hs_verdict_free(verdict);
    return status;
}
