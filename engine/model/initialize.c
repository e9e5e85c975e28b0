/* First values of parameters. The gain of a normalisation becomes 1 and any other vector 0; neither draws a number. */
#include <math.h>
#include <stdlib.h>

#include "engine/error.h"
#include "engine/model/model.h"
#include "precision/arithmetic.h"
#include "precision/random.h"

static bool is_gain(const hstep_graph *graph, hstep_value value) {
    for (size_t n = 0; n < graph->node_count; n++) {
        if (graph->nodes[n].operation == HS_OP_RMSNORM && graph->nodes[n].inputs[1] == value)
            return true;
    }
    return false;
}

/* Glorot and Bengio (2010): uniform within sqrt(6 / (fan_in + fan_out)). */
static void draw_xavier(hs_random *random, const hs_value_info *info, size_t count, double *values) {
    double fans = (double)info->dims[0];
    double fan_in = 1;
    for (uint32_t i = 1; i < info->rank; i++)
        fan_in *= (double)info->dims[i];
    fans += fan_in;
    const double limit = sqrt(6.0 / fans);
    for (size_t i = 0; i < count; i++)
        values[i] = (2.0 * hs_random_uniform(random) - 1.0) * limit;
}

/* Box and Muller (1958): two uniform numbers for each normal one. */
static void draw_normal(hs_random *random, double deviation, size_t count, double *values) {
    const double two_pi = 6.283185307179586;
    for (size_t i = 0; i < count; i++) {
        const double radius = sqrt(-2.0 * hs_log(1.0 - hs_random_uniform(random)));
        values[i] = deviation * (radius * hs_cos(two_pi * hs_random_uniform(random)));
    }
}

/* `values` has room for the parameter. */
static hstep_status draw_parameter(hstep_model *model, size_t index, hstep_initialization scheme, hs_random *random,
                                   double *values, hstep_error *error) {
    const hs_value_info *info = hs_graph_value(model->graph, model->parameter_values[index]);
    const size_t count = hs_model_elements(model, index);
    if (info->rank == 1) {
        const double filling = is_gain(model->graph, model->parameter_values[index]) ? 1.0 : 0.0;
        for (size_t i = 0; i < count; i++)
            values[i] = filling;
    } else if (scheme == HSTEP_INIT_XAVIER) {
        draw_xavier(random, info, count, values);
    } else {
        draw_normal(random, info->init_divisor > 0 ? 0.02 / info->init_divisor : 0.02, count, values);
    }
    return hstep_model_write_parameter(model, index, values, error);
}

hstep_status hstep_model_initialize(hstep_model *model, hstep_initialization scheme, uint64_t seed,
                                    hstep_error *error) {
    HS_RETURN_IF(model == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_model_initialize needs a model");
    HS_RETURN_IF(scheme != HSTEP_INIT_NORMAL && scheme != HSTEP_INIT_XAVIER, error, HSTEP_ERROR_ARGUMENT,
                 "unknown initialisation %d", (int)scheme);
    size_t largest = 1;
    for (size_t i = 0; i < model->parameter_count; i++)
        largest = hs_model_elements(model, i) > largest ? hs_model_elements(model, i) : largest;
    double *values = malloc(largest * sizeof *values);
    if (values == NULL)
        return hs_fail_memory(error, "initial values");
    hs_random random = {.state = seed};
    hstep_status status = HSTEP_OK;
    for (size_t i = 0; i < model->parameter_count && status == HSTEP_OK; i++)
        status = draw_parameter(model, i, scheme, &random, values, error);
    free(values);
    return status;
}
