/* What a batch brings: checked as a whole before anything runs, then uploaded. */
#include <string.h>

#include "engine/error.h"
#include "engine/plan/plan.h"

const void *hs_batch_data(const hstep_batch *batch, const char *input) {
    for (size_t i = 0; i < batch->feed_count; i++) {
        if (batch->feeds[i].input != NULL && strcmp(batch->feeds[i].input, input) == 0)
            return batch->feeds[i].data;
    }
    if (strcmp(input, "tokens") == 0)
        return batch->tokens;
    if (strcmp(input, "targets") == 0)
        return batch->targets;
    return NULL;
}

static size_t input_elements(const hs_value_info *info, const hstep_batch *batch) {
    size_t count = 1;
    for (uint32_t i = 0; i < info->rank; i++)
        count *= hs_resolve_dim(info->dims[i], batch->sequences, batch->length);
    return count;
}

static hstep_status check_indices(const hs_value_info *info, const hstep_batch *batch, const int32_t *data,
                                  hstep_error *error) {
    const size_t count = input_elements(info, batch);
    for (size_t i = 0; i < count; i++)
        HS_RETURN_IF(data[i] < info->index_minimum || data[i] >= info->index_limit, error, HSTEP_ERROR_TOKEN,
                     "\"%s\" holds %d at sequence %zu, position %zu; allowed are %lld to %lld", info->name,
                     (int)data[i], i / batch->length, i % batch->length, (long long)info->index_minimum,
                     (long long)info->index_limit - 1);
    return HSTEP_OK;
}

static hstep_status check_feed_names(const hstep_graph *graph, const hstep_batch *batch, hstep_error *error) {
    HS_RETURN_IF(batch->feed_count != 0 && batch->feeds == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "the batch counts %zu feeds and has none", batch->feed_count);
    for (size_t i = 0; i < batch->feed_count; i++) {
        const char *name = batch->feeds[i].input;
        bool known = false;
        for (size_t v = 0; v < graph->value_count && name != NULL && !known; v++)
            known = graph->values[v].role == HS_ROLE_INPUT && strcmp(graph->values[v].name, name) == 0;
        HS_RETURN_IF(!known, error, HSTEP_ERROR_ARGUMENT, "the batch feeds \"%.80s\", which is no input of the graph",
                     name != NULL ? name : "(null)");
    }
    return HSTEP_OK;
}

hstep_status hs_batch_check_shape(size_t sequences, size_t length, hstep_error *error) {
    size_t rows = 0;
    HS_RETURN_IF(__builtin_mul_overflow(sequences, length, &rows) || rows == 0 || rows > INT32_MAX, error,
                 HSTEP_ERROR_SHAPE, "a batch of %zu sequences of %zu positions; give 1 to 2^31 - 1 rows in all",
                 sequences, length);
    return HSTEP_OK;
}

hstep_status hs_batch_check(const hstep_graph *graph, hs_mode mode, const hstep_batch *batch, hstep_error *error) {
    HS_FORWARD(hs_batch_check_shape(batch->sequences, batch->length, error));
    HS_FORWARD(check_feed_names(graph, batch, error));
    for (size_t v = 0; v < graph->value_count; v++) {
        const hs_value_info *info = &graph->values[v];
        if (info->role != HS_ROLE_INPUT || !(mode == HS_MODE_OUTPUT ? info->behind_output : info->behind_loss))
            continue;
        const void *data = hs_batch_data(batch, info->name);
        HS_RETURN_IF(data == NULL, error, HSTEP_ERROR_ARGUMENT, "the batch has no data for the input \"%s\"",
                     info->name);
        if (info->dtype == HSTEP_DTYPE_I32 && info->index_limit != 0)
            HS_FORWARD(check_indices(info, batch, data, error));
    }
    return HSTEP_OK;
}

hstep_status hs_plan_feed(hs_plan *plan, const hstep_batch *batch, hstep_error *error) {
    hs_backend *backend = plan->request.backend;
    for (size_t v = 0; v < plan->request.graph->value_count; v++) {
        const hs_value_info *info = &plan->request.graph->values[v];
        const hs_view *view = &plan->views[v];
        if (info->role == HS_ROLE_INPUT && view->buffer != NULL)
            HS_FORWARD(backend->api->write(backend, view->buffer, view->offset, hs_batch_data(batch, info->name),
                                           hs_view_bytes(view), error));
    }
    return HSTEP_OK;
}
