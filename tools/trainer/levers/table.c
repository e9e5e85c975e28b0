/* Levers for people: a row for each, or the whole story of one. */
#include <inttypes.h>
#include <string.h>

#include "trainer/levers/levers.h"

enum { FIGURE = 40 };

static int widest_name(const hstep_lever *levers, size_t count) {
    size_t widest = strlen("lever");
    for (size_t i = 0; i < count; ++i)
        widest = strlen(levers[i].name) > widest ? strlen(levers[i].name) : widest;
    return (int)widest;
}

/* "5.3e-13 < 0.081", or "0.2 >= 0.081" where it went beyond. */
static void describe(double figure, double limit, char text[FIGURE]) {
    snprintf(text, FIGURE, "%.2g %s %.2g", figure, figure < limit ? "<" : ">=", limit);
}

void hs_levers_print_table(FILE *out, const hstep_context *context) {
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    const int name = widest_name(levers, count);
    const unsigned threads = hstep_context_threads(context);
    fprintf(out, "%s, %u thread%s\n\n%-*s  kind   %-15s  speed  %-18s  %-18s  %-12s  why\n",
            hstep_context_device_name(context), threads, threads == 1 ? "" : "s", name, "lever", "state", "max |f-r|",
            "mean rel", "cells beyond");
    for (size_t i = 0; i < count; ++i) {
        const hstep_lever *lever = &levers[i];
        char speed[FIGURE] = "", max_abs[FIGURE] = "", mean_rel[FIGURE] = "", beyond[FIGURE] = "";
        if (lever->gate != NULL) {
            const hstep_gate_case *worst = &lever->gate->worst;
            if (lever->gate->speed > 0)
                snprintf(speed, sizeof speed, "%.2f", lever->gate->speed);
            describe(worst->max_abs, worst->max_abs_limit, max_abs);
            describe(worst->mean_rel, worst->mean_rel_limit, mean_rel);
            snprintf(beyond, sizeof beyond, "%" PRIu64, worst->cells_beyond + worst->cells_wrong);
        }
        fprintf(out, "%-*s  %-5s  %-15s  %-5s  %-18s  %-18s  %-12s  %s\n", name, lever->name,
                lever->exact ? "exact" : "gated", hstep_lever_state_name(lever->state), speed, max_abs, mean_rel,
                beyond, lever->reason);
    }
    fputs("\nspeed: against the exact kernels. --explain NAME shows each shape, --json everything.\n", out);
}

static void explain_cases(FILE *out, const hstep_lever_gate *gate) {
    fprintf(out, "\n%5s %5s %6s  form  %-18s  %-18s  %-8s  beyond  wrong  verdict\n", "m", "n", "k", "max |f-r|",
            "mean rel", "max rel");
    for (size_t i = 0; i < gate->case_count; ++i) {
        const hstep_gate_case *c = &gate->cases[i];
        char max_abs[FIGURE], mean_rel[FIGURE];
        describe(c->max_abs, c->max_abs_limit, max_abs);
        describe(c->mean_rel, c->mean_rel_limit, mean_rel);
        fprintf(out, "%5zu %5zu %6zu  %-4s  %-18s  %-18s  %-8.2g  %6" PRIu64 "  %5" PRIu64 "  %s%s%s%s\n", c->m, c->n,
                c->k, hs_levers_form(c->a_form, c->b_form), max_abs, mean_rel, c->max_rel, c->cells_beyond,
                c->cells_wrong, c->passed ? "passed" : "failed on ", c->passed ? "" : c->failed_inputs,
                c->passed ? "" : ", ", c->passed ? "" : c->failed_storage);
    }
}

static void explain_timings(FILE *out, const hstep_lever_gate *gate) {
    fprintf(out, "\n%5s %5s %6s  form  exact, ms  lever, ms  speed\n", "m", "n", "k");
    for (size_t i = 0; i < gate->timing_count; ++i) {
        const hstep_gate_timing *t = &gate->timings[i];
        fprintf(out, "%5zu %5zu %6zu  %-4s  %9.4f  %9.4f  %5.2f\n", t->m, t->n, t->k,
                hs_levers_form(t->a_form, t->b_form), 1e3 * t->exact_seconds, 1e3 * t->lever_seconds, t->speed);
    }
}

void hs_levers_explain(FILE *out, const hstep_lever *lever) {
    fprintf(out, "%s: %s, %s\n%s\n", lever->name, lever->exact ? "exact" : "gated",
            hstep_lever_state_name(lever->state), lever->reason);
    if (lever->exact) {
        fputs("It gives the reference's bits, which the tests hold it to, so there is nothing to judge.\n", out);
        return;
    }
    const hstep_lever_gate *gate = lever->gate;
    if (gate == NULL)
        return;
    fprintf(out, "Judged in %s, in %.2f s, on %" PRIu64 " cells%s.\n", hstep_precision_name(gate->precision),
            gate->seconds, gate->worst.cells,
            gate->flushes_subnormals ? ", against a reference to which subnormal operands are zero" : "");
    explain_cases(out, gate);
    if (gate->timing_count > 0)
        explain_timings(out, gate);
}
