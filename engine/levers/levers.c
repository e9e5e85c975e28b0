#include "engine/levers/levers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/levers/build.h"
#include "engine/levers/cache.h"
#include "engine/levers/clock.h"
#include "engine/levers/gate.h"
#include "engine/levers/selection.h"

/* A lever has to win by more than timing is uncertain. */
#define WINNING_SPEED 1.05

enum { REASON = 448 };

/* Depths that are judged whatever comes; where it is not known what does, a large vocabulary stands for the rest. */
static const size_t always[] = {128, 256, 1024};
enum { ALWAYS = sizeof always / sizeof always[0], LARGE_VOCABULARY = 50257 };

/* Sums that are longer are judged at this length. */
enum { DEEPEST = 65536 };

void hs_verdict_free(hs_verdict *verdict) {
    free(verdict->cases);
    free(verdict->timings);
    *verdict = (hs_verdict){0};
}

void hs_lever_table_free(hs_lever_table *table) {
    for (size_t i = 0; i < HS_MAX_LEVERS; i++)
        hs_verdict_free(&table->verdicts[i]);
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

static int compare_sizes(const void *a, const void *b) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void add_depth(hs_depths *depths, size_t k) {
    if (k > 0)
        depths->k[depths->count++] = k < DEEPEST ? k : DEEPEST;
}

/* Those of the request, those that are judged always, and those of an earlier verdict that had too few. */
static hstep_status gather_depths(const hs_lever_request *request, hstep_precision precision, const hs_verdict *earlier,
                                  hs_depths *depths, hstep_error *error) {
    depths->count = 0;
    depths->k = malloc((request->product_count + ALWAYS + 1 + earlier->gate.case_count) * sizeof *depths->k);
    if (depths->k == NULL)
        return hs_fail_memory(error, "the gate of a lever");
    for (size_t i = 0; i < ALWAYS; i++)
        add_depth(depths, always[i]);
    for (size_t i = 0; i < request->product_count; i++)
        if (request->products[i].precision == precision)
            add_depth(depths, request->products[i].k);
    if (request->products == NULL)
        add_depth(depths, LARGE_VOCABULARY);
    for (size_t i = 0; i < earlier->gate.case_count; i++)
        add_depth(depths, earlier->cases[i].k);
    qsort(depths->k, depths->count, sizeof *depths->k, compare_sizes);
    size_t kept = 0;
    for (size_t i = 0; i < depths->count; i++)
        if (kept == 0 || depths->k[i] != depths->k[kept - 1])
            depths->k[kept++] = depths->k[i];
    depths->count = kept;
    return HSTEP_OK;
}

static bool covers(const hs_verdict *verdict, const hs_depths *depths) {
    for (size_t i = 0; i < depths->count; i++) {
        size_t j = 0;
        while (j < verdict->gate.case_count && verdict->cases[j].k != depths->k[i])
            j++;
        if (j == verdict->gate.case_count)
            return false;
    }
    return true;
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
} judgement;

/* Everything that the figures depend on: what they were compared with is this build's exact levers. */
static bool make_key(const judgement *j, char key[HS_CACHE_KEY]) {
    const hs_backend_api *api = j->backend->api;
    uint64_t build;
    if (!hs_build_checksum(&build))
        return false;
    int length = snprintf(key, HS_CACHE_KEY, "%s; %u threads; halfstep %016" PRIx64 "; %s;", api->device(j->backend),
                          api->threads(j->backend), build, j->findings.identity);
    const hstep_lever *levers;
    const size_t count = api->levers(j->backend, &levers);
    for (size_t i = 0; i < count && length < HS_CACHE_KEY; i++)
        if (levers[i].exact && levers[i].state == HSTEP_LEVER_ACTIVE)
            length += snprintf(key + length, (size_t)(HS_CACHE_KEY - length), " %s", levers[i].name);
    return length < HS_CACHE_KEY;
}

/* Fills the verdict from the cache or from the gate. */
static hstep_status judge(const judgement *j, hstep_error *error) {
    char key[HS_CACHE_KEY];
    const bool keyed = make_key(j, key);
    hs_verdict earlier = {0};
    if (keyed && !j->request->judge_anew)
        (void)hs_cache_read(j->name, key, &earlier);
    hs_depths depths;
    HS_FORWARD(gather_depths(j->request, j->facts.precision, &earlier, &depths, error));
    if (earlier.gate.case_count > 0 && covers(&earlier, &depths)) {
        free(depths.k);
        *j->verdict = earlier;
        return HSTEP_OK;
    }
    hs_verdict_free(&earlier);
    const double start = hs_clock();
    const hstep_status status = hs_gate_hold(j->backend, j->lever, j->facts.precision, &depths, j->verdict, error);
    free(depths.k);
    HS_FORWARD(status);
    j->verdict->gate.seconds = hs_clock() - start;
    if (keyed)
        hs_cache_write(j->name, key, j->verdict);
    return HSTEP_OK;
}

static const char *form_name(const hstep_gate_case *c) {
    return c->a_form == HSTEP_TRANSPOSE ? "At B" : c->b_form == HSTEP_TRANSPOSE ? "A Bt" : "A B";
}

static void describe_rejection(const hstep_gate_case *w, char *text, size_t size) {
    (void)snprintf(text, size,
                   "wrong on %s inputs first, %s with %zu x %zu x %zu: largest |f-r| %.3g (limit %.3g), mean rel %.3g "
                   "(limit %.3g), %llu of %llu cells beyond their bound, %llu wrong",
                   w->failed_inputs, form_name(w), w->m, w->n, w->k, w->max_abs, w->max_abs_limit, w->mean_rel,
                   w->mean_rel_limit, (unsigned long long)w->cells_beyond, (unsigned long long)w->cells,
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
    (void)snprintf(text, size, "%s: %.2f times as fast as the exact kernels in %s%s%s%s", j->findings.reason,
                   gate->speed, hstep_precision_name(gate->precision), !wins && required ? ", but required" : "",
                   j->findings.remark[0] != '\0' ? "; " : "", j->findings.remark);
    return wins || required ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_SLOWER;
}

static bool serves_products(const hs_lever_request *request, hstep_precision precision) {
    for (size_t i = 0; i < request->product_count; i++)
        if (request->products[i].precision == precision)
            return true;
    return request->products == NULL;
}

/* What a lever shall be, without changing it yet: the gate of the next one runs without this one. */
static void decide_gated(judgement *j, hs_wish wish, hstep_lever_state *state, char *text, size_t size) {
    *state = HSTEP_LEVER_DISABLED;
    if (wish == HS_WISH_LEFT_OUT) {
        (void)snprintf(text, size, "left out on request");
        return;
    }
    if (wish == HS_WISH_AUTO && !serves_products(j->request, j->facts.precision)) {
        (void)snprintf(text, size, "no product in %s is to come", hstep_precision_name(j->facts.precision));
        return;
    }
    j->backend->api->lever_find(j->backend, j->lever, &j->findings);
    *state = j->findings.state;
    (void)snprintf(text, size, "%s", j->findings.reason);
    if (*state == HSTEP_LEVER_ACTIVE) {
        hstep_error why = {0};
        const hstep_status status = judge(j, &why);
        if (status == HSTEP_OK) {
            *state = conclude(j, wish == HS_WISH_REQUIRED, text, size);
        } else {
            /* The exact kernels run without it. */
            *state = HSTEP_LEVER_DISABLED;
            (void)snprintf(text, size, "could not be judged: %s", why.message);
        }
    }
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

static hstep_status choose_gated(hs_backend *backend, const hs_lever_request *request, const hs_wish *wishes,
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
        decide_gated(&j, wishes[i], &states[i], reasons[i], sizeof reasons[i]);
        HS_RETURN_IF(wishes[i] == HS_WISH_REQUIRED && states[i] != HSTEP_LEVER_ACTIVE, error,
                     HSTEP_ERROR_BACKEND_UNAVAILABLE, "the required lever %s is %s: %s", name,
                     hstep_lever_state_name(states[i]), reasons[i]);
    }
    for (size_t i = 0; i < table->count; i++)
        if (!table->levers[i].exact)
            backend->api->lever_set(backend, i, states[i], reasons[i]);
    return HSTEP_OK;
}

/* The exact ones first: the others are timed against them. */
static hstep_status choose(hs_backend *backend, const hs_lever_request *request, const hs_wish *wishes,
                           hs_lever_table *table, hstep_error *error) {
    hs_levers_copy(backend, table);
    for (size_t i = 0; i < table->count; i++)
        if (table->levers[i].exact)
            HS_FORWARD(choose_exact(backend, i, table->levers[i].name, wishes[i], error));
    HS_FORWARD(choose_gated(backend, request, wishes, table, error));
    hs_levers_copy(backend, table);
    return HSTEP_OK;
}

hstep_status hs_levers_choose(hs_backend *backend, const hs_lever_request *request, hs_lever_table *table,
                              hstep_error *error) {
    hs_wish wishes[HS_MAX_LEVERS];
    *table = (hs_lever_table){0};
    HS_FORWARD(hs_selection_parse(request->selection, backend, wishes, error));
    if (backend->api->lever_set == NULL) {
        hs_levers_copy(backend, table);
        return HSTEP_OK;
    }
    const hstep_status status = choose(backend, request, wishes, table, error);
    if (status != HSTEP_OK)
        hs_lever_table_free(table);
    return status;
}
