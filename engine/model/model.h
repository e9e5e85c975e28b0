/* The inside of a model. */
#ifndef HS_ENGINE_MODEL_MODEL_H
#define HS_ENGINE_MODEL_MODEL_H

#include <halfstep/model.h>

#include "engine/context.h"
#include "engine/graph/graph.h"
#include "engine/plan/cache.h"

struct hstep_model {
    hstep_context *context;
    hstep_graph *graph;
    size_t parameter_count;
    hstep_value *parameter_values; /* in the graph */
    hs_buffer **parameters;        /* f64 masters */
    hs_view *casts;                /* of parameters that products read in 16 bits; buffer NULL where there is none */
    hs_program *cast;              /* makes all of them; NULL where there are none */
    size_t cast_count;
    uint64_t cast_revision; /* of the parameters that they were made of */
    uint64_t *revisions;
    uint64_t revision; /* rises with any of them */
    hs_plan_cache plans;
    hstep_decoder_config decoder; /* what it was built from; width 0 for another graph */
    hstep_precision_rule *rules;  /* those of `decoder` */
    bool has_trainer;
    size_t head_rows; /* as its trainer is configured, for the loss without learning too (hs_plan_request) */
    bool half_loaded; /* loading broke off: the values are of two files */
};

/* Number of elements of parameter `index`. */
size_t hs_model_elements(const hstep_model *model, size_t index);

/* Where one of the parameters' buffers stands in memory; HSTEP_ERROR_UNSUPPORTED where the host does not see it. */
hstep_status hs_model_host_data(const hstep_model *model, hs_buffer *const *buffers, size_t index, double **values,
                                hstep_error *error);

/* Refuses a model that is half loaded. */
hstep_status hs_model_check_whole(const hstep_model *model, hstep_error *error);

/* Notes that parameter `index` has new values. */
void hs_model_touch(hstep_model *model, size_t index);

/*
 * What the loss of a batch is divided by: the batch's own weight where it gives one, else the number of targets for
 * cross-entropy and 1 for other losses; 0 for cross-entropy without targets. The batch must have been checked.
 */
hstep_status hs_model_batch_weight(const hstep_model *model, const hstep_batch *batch, double *weight,
                                   hstep_error *error);

/* engine/model/casts.c: parameters in 16 bits, where the backend has products that read them so. */
hstep_status hs_model_create_casts(hstep_model *model, hstep_error *error);
void hs_model_destroy_casts(hstep_model *model);

/* Makes the casts anew if parameters have changed since; before every forward pass. */
hstep_status hs_model_refresh_casts(hstep_model *model, hstep_error *error);

/* Buffers on a backend, one for each parameter, zero-filled; a list of NULLs is destroyed as well as a full one. */
hstep_status hs_parameter_buffers_create(const hstep_model *model, hs_backend *backend, hs_buffer ***buffers,
                                         hstep_error *error);
void hs_parameter_buffers_destroy(const hstep_model *model, hs_backend *backend, hs_buffer **buffers);

#endif
