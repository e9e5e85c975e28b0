/* What a plan brings to its program besides parameters and computed values. */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/plan/plan.h"
#include "precision/arithmetic.h"

static void fill_positions(const hs_plan *plan, int32_t *positions) {
    const size_t rows = plan->request.sequences * plan->request.length;
    for (size_t r = 0; r < rows; r++)
        positions[r] = (int32_t)(r % plan->request.length);
}

/* angle = position * exp(-(2i / width) * log(base)) (Su et al., 2021; policy, section 3). */
static void fill_rotary(const hs_plan *plan, const hs_value_info *info, double *table) {
    const size_t half = info->head_width / 2;
    const double log_base = hs_log(info->rotary_base);
    for (size_t i = 0; i < half; i++) {
        const double exponent = 2.0 * (double)i / (double)info->head_width;
        const double frequency = hs_exp(-exponent * log_base);
        for (size_t position = 0; position < plan->request.length; position++) {
            const double angle = (double)position * frequency;
            table[position * half + i] = info->role == HS_ROLE_ROTARY_COSINE ? hs_cos(angle) : hs_sin(angle);
        }
    }
}

static hstep_status fill_table(hs_plan *plan, const hs_value_info *info, const hs_view *view, hstep_error *error) {
    HS_RETURN_IF(info->role != HS_ROLE_POSITIONS && (double)plan->request.length > HS_LARGEST_ANGLE, error,
                 HSTEP_ERROR_SHAPE, "sequences of %zu positions; rotary embedding takes at most %.0f",
                 plan->request.length, HS_LARGEST_ANGLE);
    const size_t bytes = hs_view_bytes(view);
    void *table = malloc(bytes + 1);
    if (table == NULL)
        return hs_fail_memory(error, "a table of positions");
    if (info->role == HS_ROLE_POSITIONS)
        fill_positions(plan, table);
    else
        fill_rotary(plan, info, table);
    const hstep_status status =
        plan->request.backend->api->write(plan->request.backend, view->buffer, 0, table, bytes, error);
    free(table);
    return status;
}

hstep_status hs_plan_make_tables(hs_plan *plan, hstep_error *error) {
    hs_backend *backend = plan->request.backend;
    for (size_t v = 0; v < plan->request.graph->value_count; v++) {
        const hs_value_info *info = &plan->request.graph->values[v];
        hs_view *view = &plan->views[v];
        if (view->rank == 0 || info->role == HS_ROLE_PARAMETER || info->role == HS_ROLE_COMPUTED)
            continue;
        HS_FORWARD(backend->api->buffer_create(backend, hs_view_bytes(view), &plan->owned[v], error));
        view->buffer = plan->owned[v];
        if (info->role != HS_ROLE_INPUT && info->role != HS_ROLE_SEED)
            HS_FORWARD(fill_table(plan, info, view, error));
    }
    return HSTEP_OK;
}
