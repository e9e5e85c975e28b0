/* The words for enumerators, in one place. */
#include <halfstep/halfstep.h>

#include <string.h>

#include "engine/backend.h"
#include "engine/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *hstep_version(void) { return HSTEP_VERSION; }

const char *hstep_claim_name(hstep_claim claim) {
    static const char *const names[] = {"equal bits", "within the target", "no farther than theirs", "outside"};
    const size_t index = (size_t)claim;
    return index < COUNT(names) ? names[index] : "unknown claim";
}

const char *hstep_status_name(hstep_status status) {
    static const char *const names[] = {"ok",
                                        "bad argument",
                                        "bad shape",
                                        "token outside the vocabulary",
                                        "no targets",
                                        "missing gradient",
                                        "dirty gradient",
                                        "stale tape",
                                        "nonfinite forward value",
                                        "unsupported operation",
                                        "backend unavailable",
                                        "out of memory",
                                        "bad input file",
                                        "output not written"};
    const size_t index = (size_t)status;
    return index < COUNT(names) ? names[index] : "unknown status";
}

static const char *const precision_names[] = {"f64", "fp16-fp32", "bf16-fp32"};

const char *hstep_precision_name(hstep_precision precision) {
    const size_t index = (size_t)precision;
    return index < COUNT(precision_names) ? precision_names[index] : "unknown precision";
}

hstep_status hstep_precision_parse(const char *text, hstep_precision *precision) {
    static const char *const short_names[] = {"f64", "fp16", "bf16"};
    if (text == NULL || precision == NULL)
        return HSTEP_ERROR_ARGUMENT;
    for (size_t i = 0; i < COUNT(precision_names); i++) {
        if (strcmp(text, precision_names[i]) == 0 || strcmp(text, short_names[i]) == 0) {
            *precision = (hstep_precision)i;
            return HSTEP_OK;
        }
    }
    return HSTEP_ERROR_ARGUMENT;
}

const char *hstep_lever_state_name(hstep_lever_state state) {
    static const char *const names[] = {"absent", "not built", "failed to build", "rejected",
                                        "slower", "disabled",  "active"};
    const size_t index = (size_t)state;
    return index < COUNT(names) ? names[index] : "unknown state";
}

int hstep_levers_exact(const hstep_lever *levers, size_t count, hstep_precision precision) {
    for (size_t i = 0; i < count; i++) {
        const hstep_lever *lever = &levers[i];
        if (!lever->exact && lever->state == HSTEP_LEVER_ACTIVE && lever->gate && lever->gate->precision == precision)
            return 0;
    }
    return 1;
}

const char *hs_operation_name(hs_operation operation) {
    static const char *const names[] = {
#define HS_NAME(id, name) name,
        HS_OPERATIONS(HS_NAME)
#undef HS_NAME
    };
    const size_t index = (size_t)operation;
    return index < COUNT(names) ? names[index] : "unknown operation";
}
