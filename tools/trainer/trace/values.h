/* Tensors by name, as they come, for one file. */
#ifndef HS_TRAINER_VALUES_H
#define HS_TRAINER_VALUES_H

#include <stdbool.h>

#include <halfstep/halfstep.h>

#include "trainer/trace/settings.h"
#include "trainer/trace/subject.h"

/* All zeros is one without tensors. */
typedef struct hs_values {
    hstep_tensor_data *items;
    size_t count;
    bool no_memory; /* something is missing */
} hs_values;

/* What the subject computes: tokens, targets, every operation's output, probabilities, gradients where wanted. */
hstep_status hs_values_collect(const hs_trace_settings *settings, const hs_subject *subject, hs_values *values,
                               hstep_error *error);

void hs_values_free(hs_values *values);

#endif
