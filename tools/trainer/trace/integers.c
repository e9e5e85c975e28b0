#include "trainer/trace/integers.h"

#include <math.h>
#include <stdlib.h>

#include "scatter.h"
#include "trainer/report.h"

/* The largest e of which 4^e is at most `in`: sums of `in` products by numbers below 2^-e neither grow nor vanish. */
static int half_of_log2(size_t in) {
    int e = 0;
    while (in >>= 2)
        ++e;
    return e;
}

/* All numbers have 16 bits, so that f32 holds them too. */
static double element(const hstep_parameter *parameter, uint32_t number, size_t index) {
    const double r = (double)(hs_scatter((uint32_t)index, number + 1) >> 16) - 32768;
    return parameter->rank == 1 ? 1 + ldexp(r, -17) : ldexp(r, -15 - half_of_log2(parameter->dims[1]));
}

hstep_status hs_integers_write_weights(hstep_model *model, hstep_error *error) {
    hstep_status status = HSTEP_OK;
    for (size_t p = 0; p < hstep_model_parameter_count(model) && status == HSTEP_OK; ++p) {
        hstep_parameter parameter;
        status = hstep_model_parameter(model, p, &parameter, error);
        double *values = status == HSTEP_OK ? calloc(parameter.elements, sizeof *values) : NULL;
        if (status == HSTEP_OK && values == NULL)
            status = hs_no_memory(error);
        for (size_t i = 0; status == HSTEP_OK && i < parameter.elements; ++i)
            values[i] = element(&parameter, (uint32_t)p, i);
        if (status == HSTEP_OK)
            status = hstep_model_write_parameter(model, p, values, error);
        free(values);
    }
    return status;
}

void hs_integers_fill_tokens(size_t vocabulary, size_t sequences, size_t length, int32_t *tokens, int32_t *targets) {
    for (size_t row = 0; row < sequences * length; ++row) {
        const uint32_t index = (uint32_t)(row + row / length); /* a sequence has one token more than inputs */
        tokens[row] = (int32_t)(hs_scatter(index, 0) % vocabulary);
        targets[row] = (int32_t)(hs_scatter(index + 1, 0) % vocabulary);
    }
}
