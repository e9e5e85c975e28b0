#include "engine/levers/levers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/levers/cache/build.h"
#include "engine/levers/cache/cache.h"
#include "engine/levers/cache/machine.h"
#include "engine/levers/gate/clock.h"
#include "engine/levers/gate/gate.h"
#include "engine/levers/pin.h"
#include "engine/levers/selection.h"

/* A lever has to win by more than timing is uncertain. */
#define WINNING_SPEED 1.05

enum { REASON = 512 };

/* Where it is not known what is to come, a large vocabulary stands for the deepest products of training. */
enum { LARGE_VOCABULARY = 50257 };

void hs_verdict_free(hs_verdict *verdict) {
    free(verdict->cases);
    free(verdict->timings);
    *verdict = (hs_verdict){0};
}

void hs_lever_table_free(hs_lever_table *table) {
    for (size_t i = 0; i < HS_MAX_LEVERS; i++)
        hs_verdict_free(&table->verdicts[i]);
    free(table->pin);
    table->pin = NULL;
    table->count = 0;
}

void hs_levers_copy(const hs_backend *backend, hs_lever_table *table) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    table->count = count < HS_MAX_LEVERS ? count : HS_MAX_LEVERS;
    for (size_t i = 0; i < table->count; i++) {
        table->levers[i] = levers[i];
        table->levers[i].gate = table->verdicts[i].cases != NULL ? &table->verdicts[i].gate : NULL;
    }
}

/* ---- Depths ---- */

static bool has_depth(const hs_depths *depths, size_t k) {
    for (size_t i = 0; i < depths->count; i++)
        if (depths->k[i] == k)
            return true;
    return false;
}

/* Those of the request, each once. */
static hstep_status gather_depths(const hs_lever_request *request, hstep_precision precision, hs_depths *depths,
                                  hstep_error *error) {
    *depths = (hs_depths){.k = malloc((request->product_count + 1) * sizeof *depths->k)};
    if (depths->k == NULL)
        return hs_fail_memory(error, "the gate of a lever");
    for (size_t i = 0; i < request->product_count; i++) {
        const size_t k = request->products[i].k;
        if (request->products[i].precision == precision && k > 0 && !has_depth(depths, k))
            depths->k[depths->count++] = k;
    }
    if (request->products == NULL)
        depths->k[depths->count++] = LARGE_VOCABULARY;
    return HSTEP_OK;
}

/* ---- One gated lever ---- */

typedef struct judgement {
    hs_backend *backend;
    const hs_lever_request *request;
    size_t lever;
    const char *name;
    hs_lever_facts facts;
    hs_lever_findings findings;
    hs_verdict *verdict;
    bool unjudged; /* because judging it failed */
} judgement;

/* Everything that the figures depend on: what they were compared with is this build's exact levers. */
static bool make_key(const judgement *j, const char *machine, char key[HS_CACHE_KEY]) {
    const hs_backend_api *api = j->backend->api;
    uint64_t build;
    if (!hs_build_checksum(&build))
        return false;
    int length = snprintf(key, HS_CACHE_KEY, "%s; %u threads; halfstep %016" PRIx64 ";%s", machine,
                          api->threads(j->backend), build, j->facts.flushes_subnormals ? " flushes subnormals;" : "");
    const hstep_lever *levers;
    const size_t count = api->levers(j->backend, &levers);
    for (size_t i = 0; i < count && length < HS_CACHE_KEY; i++)
        if (levers[i].exact && levers[i].state == HSTEP_LEVER_ACTIVE)
            length += snprintf(key + length, (size_t)(HS_CACHE_KEY - length), " %s", levers[i].name);
    return length < HS_CACHE_KEY;
}

/* Fills the verdict from the cache, and from the gate what is missing there. */
static hstep_status judge(const judgement *j, const char *machine, hstep_error *error) {
    char key[HS_CACHE_KEY];
    hs_verdict *verdict = j->verdict;
    hs_depths depths;
    HS_FORWARD(gather_depths(j->request, j->facts.precision, &depths, error));
    const bool keyed = make_key(j, machine, key);
    char trouble[HS_CACHE_TROUBLE];
    if (hs_cache_trouble(trouble))
        hs_say(&j->request->log, HSTEP_LOG_WARNING, "verdicts on levers that were kept do not count: %s", trouble);
    if (keyed && !j->request->judge_anew && hs_cache_read(j->name, key, verdict) &&
        verdict->gate.precision != j->facts.precision)
        hs_verdict_free(verdict);
    const double start = hs_clock();
    bool measured = false;
    const hstep_status status = hs_gate_hold(j->backend, j->lever, &j->facts, &depths, verdict, &measured, error);
    free(depths.k);
    HS_FORWARD(status);
    verdict->gate.from_cache = !measured;
    if (!measured)
        return HSTEP_OK;
    verdict->gate.seconds += hs_clock() - start;
    if (keyed && !hs_cache_write(j->name, key, verdict))
        hs_say(&j->request->log, HSTEP_LOG_WARNING,
               "the verdict on lever %s could not be kept in the user's cache directory: it will be judged again "
               "the next time",
               j->name);
    return HSTEP_OK;
}

static const char *form_name(const hstep_gate_case *c) {
    static const char *const forms[2][2] = {{"A B", "A Bt"}, {"At B", "At Bt"}};
    return forms[c->a_form == HSTEP_TRANSPOSE][c->b_form == HSTEP_TRANSPOSE];
}

static void describe_rejection(const hstep_gate_case *w, char *text, size_t size) {
    (void)snprintf(text, size,
                   "wrong on %s inputs first, %s in %s with %zu x %zu x %zu: largest |f-r| %.3g (limit %.3g), mean rel "
                   "%.3g (limit %.3g), %llu of %llu cells beyond their bound, %llu wrong",
                   w->failed_inputs, form_name(w), w->failed_storage, w->m, w->n, w->k, w->max_abs, w->max_abs_limit,
                   w->mean_rel, w->mean_rel_limit, (unsigned long long)w->cells_beyond, (unsigned long long)w->cells,
                   (unsigned long long)w->cells_wrong);
}

/* Turns figures into a state, and the state into words. */
static hstep_lever_state conclude(const judgement *j, bool required, char *text, size_t size) {
    const hstep_lever_gate *gate = &j->verdict->gate;
    if (!gate->worst.passed) {
        describe_rejection(&gate->worst, text, size);
        return HSTEP_LEVER_REJECTED;
    }
    const bool wins = gate->speed >= WINNING_SPEED;
    (void)snprintf(text, size, "%s: %.2f times as fast as the exact kernels in %s%s%s%s%s", j->findings.reason,
                   gate->speed, hstep_precision_name(gate->precision), !wins && required ? ", but required" : "",
                   gate->flushes_subnormals ? "; subnormal operands count as zero" : "",
                   j->findings.remark[0] != '\0' ? "; " : "", j->findings.remark);
    return wins || required ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_SLOWER;
}

static bool serves_products(const hs_lever_request *request, hstep_precision precision) {
    for (size_t i = 0; i < request->product_count; i++)
        if (request->products[i].precision == precision)
            return true;
    return request->products == NULL;
}

/* What is there may be something else than what the pinned set was chosen with. */
static bool has_changed(const judgement *j, const char *pinned, char *text, size_t size) {
    if (strcmp(pinned, j->findings.identity) == 0)
        return false;
    (void)snprintf(text, size, "what stands behind it has changed. It was \"%.150s\" and is \"%.150s\"", pinned,
                   j->findings.identity);
    return true;
}

/* The verdict of the gate, unless long runs have spoken already. */
static hstep_lever_state judge_found(judgement *j, bool required, char *text, size_t size) {
    char machine[HS_LEVER_MACHINE], rejection[HS_CACHE_REASON];
    hstep_error why = {0};
    hs_lever_machine(j->backend, j->findings.identity, machine);
    if (hs_cache_is_rejected(j->name, machine, rejection)) {
        (void)snprintf(text, size, "%s", rejection);
        return HSTEP_LEVER_REJECTED;
    }
    if (judge(j, machine, &why) == HSTEP_OK)
        return conclude(j, required, text, size);
    /* The exact kernels run without it. */
    j->unjudged = true;
    (void)snprintf(text, size, "could not be judged: %s", why.message);
    return HSTEP_LEVER_DISABLED;
}

/* What a lever shall be, without changing it yet: the gate of the next one runs without this one. `pinned`: what must
 * stand behind it, or NULL. */
static hstep_lever_state decide_gated(judgement *j, hs_wish wish, const char *pinned, char *text, size_t size) {
    if (wish == HS_WISH_LEFT_OUT) {
        (void)snprintf(text, size, "left out on request");
        return HSTEP_LEVER_DISABLED;
    }
    if (wish == HS_WISH_AUTO && !serves_products(j->request, j->facts.precision)) {
        (void)snprintf(text, size, "no product in %s is to come", hstep_precision_name(j->facts.precision));
        return HSTEP_LEVER_DISABLED;
    }
    j->backend->api->lever_find(j->backend, j->lever, &j->findings);
    (void)snprintf(text, size, "%s", j->findings.reason);
    if (j->findings.state != HSTEP_LEVER_ACTIVE)
        return j->findings.state;
    if (pinned != NULL && has_changed(j, pinned, text, size))
        return HSTEP_LEVER_ABSENT;
    return judge_found(j, wish == HS_WISH_REQUIRED, text, size);
}

/* ---- All of them ---- */

/* An exact lever needs no judgement. One that a faster one replaces is there all the same. */
static hstep_status choose_exact(hs_backend *backend, size_t lever, const char *name, hs_wish wish,
                                 hstep_error *error) {
    if (wish == HS_WISH_LEFT_OUT)
        backend->api->lever_set(backend, lever, HSTEP_LEVER_DISABLED, "left out on request");
    if (wish != HS_WISH_REQUIRED)
        return HSTEP_OK;
    hs_lever_findings findings;
    backend->api->lever_find(backend, lever, &findings);
    HS_RETURN_IF(findings.state != HSTEP_LEVER_ACTIVE, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "the required lever %s is %s: %s", name, hstep_lever_state_name(findings.state), findings.reason);
    return HSTEP_OK;
}

static hstep_status choose_gated(hs_backend *backend, const hs_lever_request *request, const hs_wishes *wishes,
                                 hs_lever_table *table, hstep_error *error) {
    hstep_lever_state states[HS_MAX_LEVERS] = {HSTEP_LEVER_ABSENT};
    char reasons[HS_MAX_LEVERS][REASON];
    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->levers[i].name;
        if (table->levers[i].exact)
            continue;
        judgement j = {
            .backend = backend, .request = request, .lever = i, .name = name, .verdict = &table->verdicts[i]};
        backend->api->lever_facts(backend, i, &j.facts);
        states[i] = decide_gated(&j, wishes->wish[i], wishes->pinned ? wishes->identities[i] : NULL, reasons[i],
                                 sizeof reasons[i]);
        if (states[i] == HSTEP_LEVER_REJECTED || j.unjudged)
            hs_say(&request->log, HSTEP_LOG_WARNING, "lever %s is not used, exact kernels run: %s", name, reasons[i]);
        (void)snprintf(table->identities[i], HS_LEVER_IDENTITY, "%s", j.findings.identity);
        HS_RETURN_IF(wishes->wish[i] == HS_WISH_REQUIRED && states[i] != HSTEP_LEVER_ACTIVE, error,
                     HSTEP_ERROR_BACKEND_UNAVAILABLE, "the %s lever %s is %s: %s",
                     wishes->pinned ? "pinned" : "required", name, hstep_lever_state_name(states[i]), reasons[i]);
    }
    for (size_t i = 0; i < table->count; i++)
        if (!table->levers[i].exact)
            backend->api->lever_set(backend, i, states[i], reasons[i]);
    return HSTEP_OK;
}

/* The exact ones first: the others are timed against them. */
static hstep_status choose(hs_backend *backend, const hs_lever_request *request, const hs_wishes *wishes,
                           hs_lever_table *table, hstep_error *error) {
    hs_levers_copy(backend, table);
    for (size_t i = 0; i < table->count; i++)
        if (table->levers[i].exact)
            HS_FORWARD(choose_exact(backend, i, table->levers[i].name, wishes->wish[i], error));
    HS_FORWARD(choose_gated(backend, request, wishes, table, error));
    hs_levers_copy(backend, table);
    return HSTEP_OK;
}

static hstep_status pin(const hs_backend *backend, hs_lever_table *table, hstep_error *error) {
    table->pin = hs_pin_write(backend->api->name, table);
    return table->pin != NULL ? HSTEP_OK : hs_fail_memory(error, "the levers of a context");
}

hstep_status hs_levers_choose(hs_backend *backend, const hs_lever_request *request, hs_lever_table *table,
                              hstep_error *error) {
    hs_wishes wishes;
    *table = (hs_lever_table){0};
    HS_FORWARD(hs_selection_parse(request->selection, backend, &wishes, error));
    hstep_status status = HSTEP_OK;
    if (backend->api->lever_set == NULL)
        hs_levers_copy(backend, table);
    else
        status = choose(backend, request, &wishes, table, error);
    if (status == HSTEP_OK)
        status = pin(backend, table, error);
    if (status != HSTEP_OK)
        hs_lever_table_free(table);
    return status;
}
