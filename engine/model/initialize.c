/* First values of parameters. The gain of a normalisation becomes 1 and any other vector 0; neither draws a number. */
#include <math.h>

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
static double xavier_limit(const hs_value_info *info) {
    double fan_in = 1;
    for (uint32_t i = 1; i < info->rank; i++)
        fan_in *= (double)info->dims[i];
    return sqrt(6.0 / ((double)info->dims[0] + fan_in));
}

static void draw_uniform(hs_random *random, double limit, size_t count, double *values) {
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

static void draw(const hstep_model *model, size_t index, hstep_initialization scheme, hs_random *random, size_t count,
                 double *values) {
    const hs_value_info *info = hs_graph_value(model->graph, model->parameter_values[index]);
    if (info->rank == 1) {
        const double filling = is_gain(model->graph, model->parameter_values[index]) ? 1.0 : 0.0;
        for (size_t i = 0; i < count; i++)
            values[i] = filling;
    } else if (scheme == HSTEP_INIT_XAVIER) {
        draw_uniform(random, xavier_limit(info), count, values);
    } else {
        draw_normal(random, info->init_divisor > 0 ? 0.02 / info->init_divisor : 0.02, count, values);
    }
}

/* Piece by piece: a copy of a large table would be memory that training does not need. */
static hstep_status draw_parameter(hstep_model *model, size_t index, hstep_initialization scheme, hs_random *random,
                                   hstep_error *error) {
    enum { PIECE = 1024 };
    double piece[PIECE];
    hs_backend *backend = model->context->backend;
    const size_t elements = hs_model_elements(model, index);
    for (size_t first = 0; first < elements; first += PIECE) {
        const size_t count = elements - first < PIECE ? elements - first : PIECE;
        draw(model, index, scheme, random, count, piece);
        HS_FORWARD(backend->api->write(backend, model->parameters[index], first * sizeof *piece, piece,
                                       count * sizeof *piece, error));
    }
    hs_model_touch(model, index);
    return HSTEP_OK;
}

hstep_status hstep_model_initialize(hstep_model *model, hstep_initialization scheme, uint64_t seed,
                                    hstep_error *error) {
    HS_RETURN_IF(model == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_model_initialize needs a model");
    HS_RETURN_IF(scheme != HSTEP_INIT_NORMAL && scheme != HSTEP_INIT_XAVIER, error, HSTEP_ERROR_ARGUMENT,
                 "unknown initialisation %d", (int)scheme);
    hs_random random = {.state = seed};
    for (size_t i = 0; i < model->parameter_count; i++)
        HS_FORWARD(draw_parameter(model, i, scheme, &random, error));
    return HSTEP_OK;
}
