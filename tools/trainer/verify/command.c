#include "trainer/verify/command.h"

#include "trainer/exit.h"
#include "trainer/model/build.h"
#include "trainer/report.h"
#include "trainer/train/watching/interrupt.h"
#include "trainer/verify/conclude.h"

static int verify(hs_verify_settings *settings) {
    hs_verification v;
    hstep_error error = {0};
    hs_interrupt_watch();
    int status = hs_verification_plan(settings, &v);
    if (status == HS_EXIT_DONE && hs_sides_train(&v.data, v.sides, v.count, &error) != HSTEP_OK)
        status = hs_report_error(&error);
    if (status == HS_EXIT_DONE)
        status = hs_verification_conclude(&v);
    hs_verification_free(&v);
    return status;
}

static int clear(const hs_verify_settings *settings) {
    hstep_context *context = NULL;
    hstep_error error = {0};
    int cleared = 0;
    hstep_status status = hs_context_of(&settings->options, "exact", 1, 0, &context, &error);
    if (status == HSTEP_OK)
        status = hstep_context_clear_rejection(context, settings->clear, &cleared, &error);
    hstep_context_destroy(context);
    if (status != HSTEP_OK)
        return hs_report_error(&error);
    hs_report(cleared ? "%s may be used again where the gate lets it" : "%s was not rejected here by a long run",
              settings->clear);
    return HS_EXIT_DONE;
}

int hs_verify(int argc, char **argv) {
    hs_verify_settings settings;
    int status = hs_verify_settings_parse(argc, argv, &settings);
    if (status == HS_EXIT_DONE && !settings.help)
        status = settings.clear != NULL ? clear(&settings) : verify(&settings);
    hs_verify_settings_free(&settings);
    return status;
}
