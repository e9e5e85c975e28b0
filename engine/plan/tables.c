/* What a plan brings to its program besides parameters and computed values. */
#include <stdlib.h>

#include "engine/error.h"
#include "engine/plan/plan.h"
#include "precision/arithmetic.h"

/* The first row of each sequence stands at position `start`. */
static void fill_rows(const hs_plan *plan, hs_role role, size_t start, int32_t *rows) {
    const size_t length = plan->request.length, capacity = plan->request.graph->cache_capacity;
    for (size_t s = 0; s < plan->request.sequences; s++) {
        if (role == HS_ROLE_LAST_ROWS)
            rows[s] = (int32_t)(s * length + length - 1);
        for (size_t t = 0; role != HS_ROLE_LAST_ROWS && t < length; t++)
            rows[s * length + t] = (int32_t)(start + t + (role == HS_ROLE_CACHE_ROWS ? s * capacity : 0));
    }
}

/* angle = position * exp(-(2i / width) * log(base)) (Su et al., 2021; policy, section 3). */
static void fill_rotary(const hs_value_info *info, size_t positions, double *table) {
    const size_t half = info->head_width / 2;
    const double log_base = hs_log(info->rotary_base);
    for (size_t i = 0; i < half; i++) {
        const double exponent = 2.0 * (double)i / (double)info->head_width;
        const double frequency = hs_exp(-exponent * log_base);
        for (size_t position = 0; position < positions; position++) {
            const double angle = (double)position * frequency;
            table[position * half + i] = info->role == HS_ROLE_ROTARY_COSINE ? hs_cos(angle) : hs_sin(angle);
        }
    }
}

static bool is_rotary(const hs_value_info *info) {
    return info->role == HS_ROLE_ROTARY_COSINE || info->role == HS_ROLE_ROTARY_SINE;
}

static hstep_status fill_table(hs_plan *plan, const hs_value_info *info, const hs_view *view, size_t start,
                               hstep_error *error) {
    HS_RETURN_IF(is_rotary(info) && (double)view->dims[0] > HS_LARGEST_ANGLE, error, HSTEP_ERROR_SHAPE,
                 "sequences of %zu positions; rotary embedding takes at most %.0f", view->dims[0], HS_LARGEST_ANGLE);
    const size_t bytes = hs_view_bytes(view);
    void *table = malloc(bytes + 1);
    if (table == NULL)
        return hs_fail_memory(error, "a table of positions");
    if (is_rotary(info))
        fill_rotary(info, view->dims[0], table);
    else
        fill_rows(plan, info->role, start, table);
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
        if (view->rank == 0 || info->role == HS_ROLE_PARAMETER || info->role == HS_ROLE_STATE ||
            info->role == HS_ROLE_COMPUTED)
            continue;
        HS_FORWARD(backend->api->buffer_create(backend, hs_view_bytes(view), &plan->owned[v], error));
        view->buffer = plan->owned[v];
        if (info->role != HS_ROLE_INPUT && info->role != HS_ROLE_SEED)
            HS_FORWARD(fill_table(plan, info, view, 0, error));
    }
    return HSTEP_OK;
}

hstep_status hs_plan_start_at(hs_plan *plan, size_t position, hstep_error *error) {
    for (size_t v = 0; v < plan->request.graph->value_count; v++) {
        const hs_value_info *info = &plan->request.graph->values[v];
        if (plan->owned[v] != NULL && (info->role == HS_ROLE_POSITIONS || info->role == HS_ROLE_CACHE_ROWS))
            HS_FORWARD(fill_table(plan, info, &plan->views[v], position, error));
    }
    return HSTEP_OK;
}
