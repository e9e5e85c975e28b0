#include "trainer/verify/plan.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/model/build.h"
#include "trainer/options/places.h"
#include "trainer/report.h"

/* Names of all levers that a selection has to speak of. */
enum { SELECTION = 1024 };

static size_t vocabulary_of(const hs_verification *v) { return hstep_dataset_vocabulary(v->data.dataset); }

static hstep_status make_context(const hs_verification *v, const hs_options *o, const char *levers,
                                 hstep_context **context, hstep_error *error) {
    return hs_context_of(o, levers, vocabulary_of(v), o->batch_size * o->context, context, error);
}

/* A side with these levers, ready to train. */
static int make_side(const hs_verification *v, hs_side *side, const char *levers) {
    hstep_error error = {0};
    if (make_context(v, &side->options, levers, &side->context, &error) != HSTEP_OK ||
        hs_side_begin(side, vocabulary_of(v), &error) != HSTEP_OK)
        return hs_report_error(&error);
    return HS_EXIT_DONE;
}

static hs_side *new_side(hs_verification *v, const char *name) {
    hs_side *side = &v->sides[v->count++];
    side->options = v->settings->options;
    snprintf(side->name, sizeof side->name, "%s", name);
    return side;
}

static int make_reference(hs_verification *v) {
    hs_side *side = new_side(v, "reference");
    if (v->settings->reference == HS_VERIFY_CPU_REFERENCE)
        side->options.backend = HSTEP_BACKEND_CPU_REFERENCE;
    if (v->settings->against >= 0) {
        hs_places_clear(&side->options, (hstep_precision)v->settings->against);
        side->options.scaler = hstep_scaler_defaults((hstep_precision)v->settings->against);
    }
    return make_side(v, side, "exact");
}

/* ---- Levers ---- */

static const hstep_lever *find(const hstep_lever *levers, size_t count, const char *name) {
    for (size_t i = 0; i < count; ++i)
        if (strcmp(levers[i].name, name) == 0)
            return &levers[i];
    return NULL;
}

/* The one that is meant and no other gated one: "+cpu.openblas,-cpu.amx-bf16". */
static void select_lever(const hstep_lever *levers, size_t count, const hstep_lever *meant, char text[SELECTION]) {
    size_t used = (size_t)snprintf(text, SELECTION, "+%s", meant->name);
    for (size_t i = 0; i < count && used < SELECTION; ++i)
        if (!levers[i].exact && &levers[i] != meant)
            used += (size_t)snprintf(text + used, SELECTION - used, ",-%s", levers[i].name);
}

static int report_unavailable(const hstep_lever *lever) {
    hs_report("the lever %s is %s: %s", lever->name, hstep_lever_state_name(lever->state), lever->reason);
    return HS_EXIT_UNAVAILABLE;
}

static int make_lever_side(hs_verification *v, const hstep_lever *levers, size_t count, const hstep_lever *lever) {
    char selection[SELECTION];
    if (lever->state < HSTEP_LEVER_REJECTED || (!lever->exact && lever->state == HSTEP_LEVER_DISABLED))
        return report_unavailable(lever);
    hs_side *side = new_side(v, lever->name);
    side->exact = lever->exact != 0;
    side->gated = !lever->exact;
    if (lever->state == HSTEP_LEVER_REJECTED) {
        snprintf(side->rejection, sizeof side->rejection, "%s", lever->reason);
        return HS_EXIT_DONE;
    }
    select_lever(levers, count, lever, selection);
    return make_side(v, side, selection);
}

static int make_named(hs_verification *v, const hstep_lever *levers, size_t count) {
    int status = HS_EXIT_DONE;
    for (size_t i = 0; i < v->settings->levers.count && status == HS_EXIT_DONE; ++i) {
        const char *name = v->settings->levers.items[i];
        const hstep_lever *lever = find(levers, count, name);
        status = lever != NULL ? make_lever_side(v, levers, count, lever)
                               : hs_report_usage("verify",
                                                 "--lever %s%s%s: there is no lever of this name; trainer "
                                                 "levers lists them",
                                                 hs_report_mark(name), name, hs_report_mark(name));
    }
    return status;
}

static int make_active(hs_verification *v, const hstep_lever *levers, size_t count) {
    int status = HS_EXIT_DONE;
    for (size_t i = 0; i < count && status == HS_EXIT_DONE; ++i)
        if (!levers[i].exact && levers[i].state == HSTEP_LEVER_ACTIVE)
            status = make_lever_side(v, levers, count, &levers[i]);
    return status;
}

/* The levers as this machine finds them for the run; sides are then made on the backend that was found. */
int hs_verification_plan_levers(hs_verification *v, hstep_context *probe, hs_options *options) {
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(probe, &levers);
    const bool vulkan = strcmp(hstep_context_backend_name(probe), "vulkan") == 0;
    if (options->backend == HSTEP_BACKEND_AUTO)
        options->backend = vulkan ? HSTEP_BACKEND_VULKAN : HSTEP_BACKEND_CPU;
    v->sides = calloc(1 + v->settings->levers.count + count, sizeof *v->sides);
    if (v->sides == NULL)
        return hs_report_no_memory();
    const int status = make_reference(v);
    if (status != HS_EXIT_DONE)
        return status;
    return v->settings->levers.count > 0 ? make_named(v, levers, count) : make_active(v, levers, count);
}

static int plan_levers(hs_verification *v, hs_options *options) {
    hstep_context *probe = NULL;
    hstep_error error = {0};
    if (make_context(v, options, "auto", &probe, &error) != HSTEP_OK)
        return hs_report_error(&error);
    const int status = hs_verification_plan_levers(v, probe, options);
    hstep_context_destroy(probe);
    return status;
}

static int plan_precision(hs_verification *v) {
    v->sides = calloc(2, sizeof *v->sides);
    if (v->sides == NULL)
        return hs_report_no_memory();
    const int status = make_reference(v);
    if (status != HS_EXIT_DONE)
        return status;
    const hs_options *o = &v->settings->options;
    const char *name = o->rule_count > 0 ? "precision by place" : hstep_precision_name((hstep_precision)o->precision);
    return make_side(v, new_side(v, name), "exact");
}

int hs_verification_plan(hs_verify_settings *settings, hs_verification *v) {
    hstep_error error = {0};
    *v = (hs_verification){.settings = settings};
    if (hs_run_read_data(&settings->options, &v->data, &error) != HSTEP_OK)
        return hs_report_error(&error);
    return settings->against >= 0 ? plan_precision(v) : plan_levers(v, &settings->options);
}

void hs_verification_free(hs_verification *v) {
    hstep_error error = {0};
    for (size_t i = 0; i < v->count; ++i)
        hs_side_end(&v->sides[i]);
    free(v->sides);
    (void)hs_run_destroy(&v->data, &error);
}
