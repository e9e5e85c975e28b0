/*
 * A plan turns a graph into calls for one backend, one batch shape and one purpose: which nodes are needed, the numbers
 * behind symbolic dimensions, a place in memory for every value, and the program.
 */
#ifndef HS_ENGINE_PLAN_PLAN_H
#define HS_ENGINE_PLAN_PLAN_H

#include "engine/graph/graph.h"
#include <halfstep/model.h>

typedef enum hs_mode {
    HS_MODE_OUTPUT, /* the graph's output */
    HS_MODE_LOSS,   /* the loss */
    HS_MODE_TRAIN   /* the loss, then every gradient */
} hs_mode;

/* Memory for computed values, shared by plans of which one runs at a time. All zeros is one without memory. */
typedef struct hs_arena {
    hs_backend *backend;
    hs_buffer *buffer;
    size_t bytes;
    uint64_t generation; /* rises whenever it grows: plans of earlier ones are of no use then */
} hs_arena;

void hs_arena_destroy(hs_arena *arena);

/* A computed value or an input that products of a mixed precision read, to be measured where it stands whole. */
typedef struct hs_measured {
    hstep_value value;
    hstep_precision precision;
} hs_measured;

/* What was found in one of them: places as in enum hs_measure, and how many numbers there were. */
typedef struct hs_findings {
    uint64_t elements;
    double found[HS_MEASURES];
} hs_findings;

typedef struct hs_plan_request {
    hs_backend *backend;
    const hstep_graph *graph;
    hs_mode mode;
    size_t sequences, length;
    hs_buffer *const *parameters; /* by parameter index */
    hs_buffer *const *gradients;  /* alike, for HS_MODE_TRAIN: where the gradients go */
    hs_arena *arena;              /* grown as needed */
    const hs_view *casts;         /* by parameter index: in 16 bits, for products; buffer NULL where there is none */
    size_t head_rows;             /* of the head's logits so many rows are there at a time; 0: plan/head.c decides */
    const hs_measured *measured;  /* outlives the plan; such values stand in f64, as they are before they are rounded */
    size_t measured_count;
    hs_view *states; /* in the graph's order, for graphs with a cache. The first plan chooses types, makes buffers */
} hs_plan_request;

/* A call that measures. */
typedef struct hs_plan_measurement {
    size_t measured; /* in the request */
    uint64_t elements;
    bool backward;
} hs_plan_measurement;

typedef struct hs_plan {
    hs_plan_request request;     /* its graph may be `divided` */
    const hstep_graph *source;   /* the graph that was asked for */
    hstep_graph *divided;        /* the same with its head divided, or NULL */
    bool *needed;                /* by node */
    hs_view *views;              /* by value - 1; buffer NULL where the plan does not need the value */
    hs_buffer **owned;           /* by value - 1: inputs, tables, the seed */
    uint64_t arena_generation;   /* of the arena, where all computed values stand that nobody keeps */
    hs_program *program;         /* forward calls, then backward calls; those of a divided head take turns */
    size_t head_call;            /* the first call of a divided head; else as forward_calls */
    size_t forward_calls, calls; /* calls up to the last one of the forward pass; all */
    size_t *call_nodes;          /* the node behind each call */
    bool *measuring;             /* by call: it only measures what its node put out */
    uint32_t *flags;             /* of the last finish, by call */
    hs_plan_measurement *measures;
    size_t measure_count;
    hs_buffer *measure_results; /* HS_MEASURES numbers for each */
} hs_plan;

/* The shape of the request must have passed hs_batch_check_shape. */
hstep_status hs_plan_create(const hs_plan_request *request, hs_plan **plan, hstep_error *error);
void hs_plan_destroy(hs_plan *plan);

/* What a batch brings for the input of that name, or NULL. */
const void *hs_batch_data(const hstep_batch *batch, const char *input);

hstep_status hs_batch_check_shape(size_t sequences, size_t length, hstep_error *error);

/* Checks everything that a batch brings against the graph: presence, sizes, tokens. It needs no plan and makes none. */
hstep_status hs_batch_check(const hstep_graph *graph, hs_mode mode, const hstep_batch *batch, hstep_error *error);

/* Uploads a batch that was checked. */
hstep_status hs_plan_feed(hs_plan *plan, const hstep_batch *batch, hstep_error *error);

/* Of a graph with a cache: the rows of the next runs are the positions from this one on. */
hstep_status hs_plan_start_at(hs_plan *plan, size_t position, hstep_error *error);

hstep_status hs_plan_write_seed(hs_plan *plan, double seed, hstep_error *error);
/* One pass alone, or both in the least time. Before them the seed must have been written. */
hstep_status hs_plan_forward(hs_plan *plan, hstep_error *error);
hstep_status hs_plan_backward(hs_plan *plan, hstep_error *error);
hstep_status hs_plan_both_passes(hs_plan *plan, hstep_error *error);

/* Waits; *first_flagged becomes the first call that stored a nonfinite value, in the order of the graph that was asked
 * for, or plan->calls. */
hstep_status hs_plan_finish(hs_plan *plan, size_t *first_flagged, hstep_error *error);

/* The first call of that phase among those that are flagged, in the same order, or plan->calls. */
size_t hs_plan_first_flagged(const hs_plan *plan, hs_phase phase);

/* Runs the forward pass and waits. HSTEP_ERROR_NONFINITE_FORWARD names the first operation that was flagged. */
hstep_status hs_plan_evaluate(hs_plan *plan, hstep_error *error);

/* Runs one call and waits, with the same error; its outputs stand until the next one runs. Calls come in their order.
 */
hstep_status hs_plan_step(hs_plan *plan, size_t call, hstep_error *error);

/* Adds what the last passes found in measured values to `sums`, one for each of the request. After a finish. */
hstep_status hs_plan_add_measures(hs_plan *plan, bool forward, bool backward, hs_findings *sums, hstep_error *error);

/* Copies the loss out. One that no operation computed was flagged by none: it is judged here. */
hstep_status hs_plan_read_loss(hs_plan *plan, double *loss, hstep_error *error);

/* Copies a value out, in f64 unless it is i32; data has room for its elements. */
hstep_status hs_plan_read(hs_plan *plan, hstep_value value, void *data, hstep_error *error);

/* Reads elements [first, first + count) of a dense view: as f64, i32 as they are. */
hstep_status hs_read_numbers(hs_backend *backend, const hs_view *view, size_t first, size_t count, void *numbers,
                             hstep_error *error);

/* The format in which a model should keep a cast of a parameter for the products that read it; f64 for none. */
hstep_dtype hs_plan_cast_format(const hstep_graph *graph, const hs_backend *backend, hstep_value parameter);

/* Call `call` as the program has it. */
hs_call hs_plan_call(const hs_plan *plan, size_t call);

static inline const hs_node *hs_plan_call_node(const hs_plan *plan, size_t call) {
    return &plan->request.graph->nodes[plan->call_nodes[call]];
}

static inline bool hs_plan_is_forward(const hs_plan *plan, size_t call) {
    return call < plan->calls && hs_plan_call_node(plan, call)->phase == HS_PHASE_FORWARD;
}

/* The node of the graph that was asked for, of which the call computes all or some rows. */
static inline const hs_node *hs_plan_source_node(const hs_plan *plan, size_t call) {
    const hs_node *node = hs_plan_call_node(plan, call);
    return plan->divided != NULL ? &plan->source->nodes[node->origin - 1] : node;
}

/* ---- For the files of this folder ---- */

/* engine/plan/head.c: divides the head of the graph where that is asked for, worth it, and possible. */
hstep_status hs_plan_divide_head(hs_plan *plan, hstep_error *error);

/* engine/plan/compact.c: gives values that may stand in 16 bits that type. */
hstep_status hs_plan_compact(hs_plan *plan, hstep_error *error);

/* engine/plan/measure.c: at most so many calls measure; makes room for them, before the program is made. */
bool hs_plan_is_measured(const hs_plan *plan, hstep_value value);
size_t hs_plan_most_measures(const hs_plan *plan);
hstep_status hs_plan_prepare_measures(hs_plan *plan, hstep_error *error);

/*
 * The calls that measure the inputs of the graph, or with `call` what that call of a node puts out, are written to
 * `calls`; returns how many.
 */
size_t hs_plan_measure(hs_plan *plan, const hs_node *node, const hs_call *call, hs_call *calls);

/* The call of a node, with what is known of its views. */
hs_call hs_plan_make_call(const hs_plan *plan, const hs_node *node);

/* engine/plan/storage.c: gives every computed value that is needed its buffer and offset, and makes the arena. */
hstep_status hs_plan_place(hs_plan *plan, hstep_error *error);

/* engine/plan/tables.c: makes and fills the buffers of inputs, positions, rotary tables and the seed. */
hstep_status hs_plan_make_tables(hs_plan *plan, hstep_error *error);

#endif
