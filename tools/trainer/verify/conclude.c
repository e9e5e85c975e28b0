#include "trainer/verify/conclude.h"

#include "trainer/exit.h"
#include "trainer/report.h"
#include "trainer/train/watching/interrupt.h"
#include "trainer/verify/print.h"

/* What long runs have shown holds for later runs, too. The policy's limit decides, not what was asked for. */
static int remember(const hs_side *side) {
    char why[512];
    hstep_error error = {0};
    if (!side->gated || side->rejection[0] != '\0' || hs_side_passes(side, HS_CURVE_LIMIT))
        return HS_EXIT_DONE;
    hs_side_explain(side, HS_CURVE_LIMIT, why, sizeof why);
    if (hstep_context_reject_lever(side->context, side->name, why, &error) != HSTEP_OK)
        return hs_report_error(&error);
    hs_report("%s is rejected on this machine from now on: trainer verify --clear %s takes that back", side->name,
              side->name);
    return HS_EXIT_DONE;
}

static int print(const hs_verification *v) {
    if (v->settings->json)
        return hs_verification_print_json(v);
    hs_verification_print(v);
    return HS_EXIT_DONE;
}

int hs_verification_conclude(hs_verification *v) {
    hstep_error error = {0};
    for (size_t i = 0; i < v->count && !hs_interrupted(); ++i)
        if (hs_side_conclude(&v->data, &v->sides[i], &error) != HSTEP_OK)
            return hs_report_error(&error);
    if (hs_interrupted()) {
        hs_report("interrupted: there is no verdict");
        return HS_EXIT_INTERRUPTED;
    }
    if (v->sides[0].stopped[0] != '\0') {
        hs_report("the reference %s: there is nothing to hold the others to", v->sides[0].stopped);
        return HS_EXIT_NUMERICAL_STOP;
    }
    int status = HS_EXIT_DONE, kept = HS_EXIT_DONE;
    bool passed = true;
    for (size_t i = 1; i < v->count; ++i)
        hs_side_judge(&v->sides[i], &v->sides[0], v->settings->within);
    status = print(v);
    for (size_t i = 1; i < v->count; ++i) {
        passed = passed && v->sides[i].passed;
        const int one = remember(&v->sides[i]);
        kept = kept == HS_EXIT_DONE ? one : kept;
    }
    if (status == HS_EXIT_DONE && !passed)
        status = HS_EXIT_NUMERICAL_STOP;
    return status == HS_EXIT_DONE ? kept : status;
}
