/*
 * The one door between engine and backends: buffers, and one table of operations.
 *
 * The engine turns a graph into calls (operation, views, attributes), groups them into programs and hands those to a
 * backend, which may record them once and replay them. What changes between replays (scales, rates) therefore comes
 * through small buffers and never through attributes. Work may be asynchronous: only `finish` and `read` wait; `write`
 * and `clear` take their place in the order of submission and have copied their data when they return. A backend knows
 * no graph and no decoder.
 */
#ifndef HS_ENGINE_BACKEND_H
#define HS_ENGINE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <halfstep/context.h>
#include <halfstep/types.h>

#include "engine/error.h"

enum { HS_MAX_RANK = 4, HS_MAX_INPUTS = 8, HS_MAX_OUTPUTS = 4 };

/*
 * Every operation: identifier, name, operands. Shapes: R rows, V vocabulary, d width. "outputs <- inputs".
 * All values are f64 unless said otherwise; i32 operands are checked by the engine before they arrive.
 * An output never overlaps an input, except where "in place" is said.
 *
 * Compact storage: a value may stand in 16 bits where `supports` says so. It is read as the number that it is. What is
 * stored is rounded once to the format; whether it counts as nonfinite is judged before that, except in results of
 * products, which are rounded by the policy anyway. In operations with products the format is that of the precision.
 */
#define HS_OPERATIONS(X)                                                                                               \
    /* y[m,n] <- a, b; attributes a_form, b_form; precision. */                                                        \
    X(MATMUL, "matmul")                                                                                                \
    /* y[R,d] <- table[V,d], indices i32[R] */                                                                         \
    X(GATHER, "gather")                                                                                                \
    /* dtable[V,d] <- dy[R,d], indices i32[R], base[V,d]: base with dy's rows added one by one, ascending.             \
       In place allowed: dtable may be base. Without the third input the base is +0. */                                \
    X(GATHER_BACKWARD, "gather_backward")                                                                              \
    /* state[S,d] <- rows[R,d], indices i32[R], no index twice: row r is stored as row indices[r]. The other rows of   \
       the state keep what they hold, and no flag speaks of them. */                                                   \
    X(STORE_ROWS, "store_rows")                                                                                        \
    /* y[R,d] <- x[R,d], gain[d]; epsilon */                                                                           \
    X(RMSNORM, "rmsnorm")                                                                                              \
    /* dx[R,d] <- dy[R,d], x[R,d], gain[d]; epsilon */                                                                 \
    X(RMSNORM_BACKWARD_INPUT, "rmsnorm_backward_input")                                                                \
    /* dgain[d] <- dy[R,d], x[R,d]; epsilon */                                                                         \
    X(RMSNORM_BACKWARD_GAIN, "rmsnorm_backward_gain")                                                                  \
    /* y[R,h*w] <- x[R,h*w], positions i32[R], cosine[P,w/2], sine[P,w/2]; head_width w */                             \
    X(ROTARY, "rotary")                                                                                                \
    /* dx <- dy and the same tables */                                                                                 \
    X(ROTARY_BACKWARD, "rotary_backward")                                                                              \
    /* y[Rq,H*w] <- q[Rq,H*w], k[Rk,G*w], v[Rk,G*w], positions i32[Rq]; sequences, heads H, kv_heads G, head_width w;  \
       precision. Rq and Rk are sequences times as many rows each; query row r sees keys 0..positions[r] of its        \
       sequence. */                                                                                                    \
    X(ATTENTION, "attention")                                                                                          \
    /* dq, dk, dv <- dy, q, k, v, positions; the same attributes */                                                    \
    X(ATTENTION_BACKWARD, "attention_backward")                                                                        \
    /* y[R,f] <- gate[R,f], up[R,f] */                                                                                 \
    X(SWIGLU, "swiglu")                                                                                                \
    /* dgate, dup <- dy, gate, up */                                                                                   \
    X(SWIGLU_BACKWARD, "swiglu_backward")                                                                              \
    /* y <- a, b. In place allowed: y may be a. */                                                                     \
    X(ADD, "add")                                                                                                      \
    /* loss[1] <- logits[R,V], targets i32[R]: row losses (+0 where the target is -1), summed as a tensor */           \
    X(CROSS_ENTROPY, "cross_entropy")                                                                                  \
    /* dlogits[R,V] <- seed[1], logits[R,V], targets i32[R]: (p - [j = t]) * seed; +0 where the target is -1.          \
       In place allowed: dlogits may be logits. */                                                                     \
    X(CROSS_ENTROPY_BACKWARD, "cross_entropy_backward")                                                                \
    /* y[R,d] <- x[R,d], bias[d] */                                                                                    \
    X(ADD_BIAS, "add_bias")                                                                                            \
    /* y[d] <- x[R,d]: sum down rows */                                                                                \
    X(SUM_ROWS, "sum_rows")                                                                                            \
    /* y <- a, b: product element by element */                                                                        \
    X(MULTIPLY, "multiply")                                                                                            \
    /* y <- x; factor */                                                                                               \
    X(SCALE, "scale")                                                                                                  \
    /* y[1] <- x: sum of a tensor */                                                                                   \
    X(SUM, "sum")                                                                                                      \
    /* y[...] <- x[1]: x everywhere */                                                                                 \
    X(FILL, "fill")                                                                                                    \
    /* y[n,m] <- x[m,n] */                                                                                             \
    X(TRANSPOSE, "transpose")                                                                                          \
    /* p[R,d] <- x[R,d] */                                                                                             \
    X(SOFTMAX, "softmax")                                                                                              \
    /* dx <- dp, p */                                                                                                  \
    X(SOFTMAX_BACKWARD, "softmax_backward")                                                                            \
    /* y <- x */                                                                                                       \
    X(LOG, "log")                                                                                                      \
    /* dx <- dy, x: dy / x */                                                                                          \
    X(LOG_BACKWARD, "log_backward")                                                                                    \
    /* y <- x */                                                                                                       \
    X(SILU, "silu")                                                                                                    \
    /* dx <- dy, x */                                                                                                  \
    X(SILU_BACKWARD, "silu_backward")                                                                                  \
    /* y[1] <- g, unscale[1]: sum of (g * unscale)^2 as a tensor */                                                    \
    X(SQUARE_SUM, "square_sum")                                                                                        \
    /* y[HS_MEASURES] <- x: what becomes of x when a product of that precision reads it (enum hs_measure). Nothing     \
       that it meets is flagged. */                                                                                    \
    X(MEASURE, "measure")                                                                                              \
    /* w, m, v, cast <- g, scalars[HS_ADAMW_SCALARS]; attribute decay. w, m, v are read and written; g is used as      \
       (g * unscale) * clip and left +0, ready for the next window. Policy, section 6. The output `cast` may be        \
       missing; it gets the new weights, in 16 bits. */                                                                \
    X(ADAMW, "adamw")

typedef enum hs_operation {
#define HS_DECLARE(id, name) HS_OP_##id,
    HS_OPERATIONS(HS_DECLARE)
#undef HS_DECLARE
        HS_OP_COUNT
} hs_operation;

const char *hs_operation_name(hs_operation operation);

/* Whether an operation rounds its operands to the format of a precision, and multiplies them. */
static inline bool hs_has_products(hs_operation operation) {
    return operation == HS_OP_MATMUL || operation == HS_OP_ATTENTION || operation == HS_OP_ATTENTION_BACKWARD;
}

/* Bytes of an element. */
static inline size_t hs_dtype_size(hstep_dtype dtype) {
    switch (dtype) {
    case HSTEP_DTYPE_F64:
        return 8;
    case HSTEP_DTYPE_I32:
        return 4;
    case HSTEP_DTYPE_FP16:
    case HSTEP_DTYPE_BF16:
        break;
    }
    return 2;
}

static inline bool hs_dtype_is_half(hstep_dtype dtype) {
    return dtype == HSTEP_DTYPE_FP16 || dtype == HSTEP_DTYPE_BF16;
}

/* The type of operands of products; f64 in f64. */
static inline hstep_dtype hs_operand_dtype(hstep_precision precision) {
    switch (precision) {
    case HSTEP_PRECISION_FP16:
        return HSTEP_DTYPE_FP16;
    case HSTEP_PRECISION_BF16:
        return HSTEP_DTYPE_BF16;
    case HSTEP_PRECISION_F64:
        break;
    }
    return HSTEP_DTYPE_F64;
}

/* Places in the scalars of ADAMW: rate = lr/(1-P1), root = 1/sqrt(1-P2), decay = lr*wd. */
enum hs_adamw_scalar {
    HS_ADAMW_UNSCALE,
    HS_ADAMW_CLIP,
    HS_ADAMW_BETA1,
    HS_ADAMW_BETA2,
    HS_ADAMW_RATE,
    HS_ADAMW_ROOT,
    HS_ADAMW_EPSILON,
    HS_ADAMW_DECAY,
    HS_ADAMW_SCALARS
};

/* Places in the output of MEASURE. The first is of the finite elements, 0 for none; the others count: finite ones
   that the precision rounds to 0 though they are not, to a subnormal, to infinity; and those that were not finite. */
enum hs_measure {
    HS_MEASURE_LARGEST,
    HS_MEASURE_TO_ZERO,
    HS_MEASURE_TO_SUBNORMAL,
    HS_MEASURE_TO_INFINITY,
    HS_MEASURE_NONFINITE,
    HS_MEASURES
};

/* The output of ADAMW that may be missing: the new weights in 16 bits. */
enum { HS_ADAMW_CAST = 3 };

typedef struct hs_backend hs_backend;

/* Memory of a backend: the head of its own struct, where it needs more. */
typedef struct hs_buffer {
    unsigned char *data; /* NULL where the host does not see it */
    size_t bytes;
} hs_buffer;

/* Calls that a backend has prepared. */
typedef struct hs_program hs_program;

/* A tensor in a buffer. Strides count elements; the innermost is 1, the others may skip (a row pitch). */
typedef struct hs_view {
    hs_buffer *buffer;
    size_t offset; /* bytes */
    hstep_dtype dtype;
    uint32_t rank;
    size_t dims[HS_MAX_RANK];
    size_t strides[HS_MAX_RANK];
} hs_view;

static inline size_t hs_view_elements(const hs_view *view) {
    size_t count = 1;
    for (uint32_t i = 0; i < view->rank; i++)
        count *= view->dims[i];
    return count;
}

/* Of a view without gaps. */
static inline size_t hs_view_bytes(const hs_view *view) { return hs_view_elements(view) * hs_dtype_size(view->dtype); }

/* All of a buffer, or its front, as one row of f64. */
static inline hs_view hs_flat_view(hs_buffer *buffer, size_t elements) {
    return (hs_view){.buffer = buffer, .dtype = HSTEP_DTYPE_F64, .rank = 1, .dims = {elements}, .strides = {1}};
}

typedef struct hs_attributes {
    hstep_transpose a_form, b_form;
    size_t sequences, heads, kv_heads, head_width;
    double epsilon, factor;
    bool decay; /* ADAMW: this tensor decays */
    /* MATMUL: y gets the kernel's own sums, before their last rounding. In the mixed precisions only gated kernels can
       do that, for the gate; in f64 the sums are the result. */
    bool sums;
    /* MATMUL: a part of the steps of longer chains. y holds the sums of the steps before, and gets the sums of those up
       to here, unrounded; f64 slots hold both as they are. Calls over consecutive steps give the bits of one. */
    bool continues, unfinished;
    /* `unfinished` of CROSS_ENTROPY: y[R] gets the row losses, of which a SUM makes the loss. What is unfinished raises
       no flag: the call that finishes it does. */
} hs_attributes;

typedef struct hs_call {
    hs_operation operation;
    hstep_precision precision; /* of the products inside; others ignore it */
    hs_attributes attributes;
    uint32_t input_count, output_count;
    hs_view inputs[HS_MAX_INPUTS];
    hs_view outputs[HS_MAX_OUTPUTS];
} hs_call;

/* Where the first nonfinite value of a call stands: in output `output`, or in a part inside the operation. */
typedef struct hs_fault {
    bool found;
    int output;       /* -1 for a part */
    const char *part; /* "scores" and the like, a string constant; NULL for an output */
    uint64_t index;   /* row-major in that tensor */
    double value;
} hs_fault;

/* What is known of a lever without looking for it. */
typedef struct hs_lever_facts {
    bool fallback;             /* what serves when nothing else does: it cannot be left out */
    hstep_precision precision; /* of a gated lever: the one that it serves, in MATMUL */
    bool flushes_subnormals;   /* of a gated lever: operands that are subnormal in the half format count as zero */
} hs_lever_facts;

/* Room for what stands behind a gated lever. */
enum { HS_LEVER_IDENTITY = 512 };

/* What was found when it was looked for. */
typedef struct hs_lever_findings {
    hstep_lever_state state;          /* ACTIVE when it could be used */
    char reason[192];                 /* for the state */
    char identity[HS_LEVER_IDENTITY]; /* of a gated lever: what stands behind it. A verdict holds for this text alone */
    char remark[192];                 /* what people should know about it, or empty */
} hs_lever_findings;

/*
 * What a backend does. Functions that return a status fill *error (engine/error.h). Buffers and programs belong to the
 * backend that made them and are destroyed before it.
 */
typedef struct hs_backend_api {
    const char *name;
    void (*destroy)(hs_backend *backend);
    const char *(*device)(const hs_backend *backend);
    unsigned (*threads)(const hs_backend *backend);
    size_t (*levers)(const hs_backend *backend, const hstep_lever **levers);

    /*
     * Choosing levers (engine/levers), before programs are made: a program keeps the kernels it was made with. A new
     * backend uses all its exact levers and no gated one. lever_find looks for a lever, which it does not change. The
     * reason of lever_set is copied. All three may be NULL: nothing to choose.
     */
    void (*lever_facts)(const hs_backend *backend, size_t lever, hs_lever_facts *facts);
    void (*lever_find)(const hs_backend *backend, size_t lever, hs_lever_findings *findings);
    void (*lever_set)(hs_backend *backend, size_t lever, hstep_lever_state state, const char *reason);

    /*
     * Whether such a call can be prepared: its operation, precision, attributes and the types of its operands, as many
     * as it says. Buffers and dimensions are not looked at. Asked when a plan is made.
     */
    bool (*supports)(const hs_backend *backend, const hs_call *call);

    /* From the next run on, one thread alone computes, or all again. Under gated levers bits may depend on it. NULL:
       there is but one. */
    void (*use_one_thread)(hs_backend *backend, bool one);

    /* What crossed the bus, and of what work was made; NULL where there is no bus. */
    void (*work)(const hs_backend *backend, hstep_work *work);

    /* Bytes of all buffers, and of what programs work with. */
    size_t (*held)(const hs_backend *backend);

    /* Zero-filled memory. 0 bytes are allowed. */
    hstep_status (*buffer_create)(hs_backend *backend, size_t bytes, hs_buffer **buffer, hstep_error *error);
    void (*buffer_destroy)(hs_backend *backend, hs_buffer *buffer);
    hstep_status (*write)(hs_backend *backend, hs_buffer *buffer, size_t offset, const void *data, size_t bytes,
                          hstep_error *error);
    hstep_status (*read)(hs_backend *backend, const hs_buffer *buffer, size_t offset, void *data, size_t bytes,
                         hstep_error *error);
    hstep_status (*clear)(hs_backend *backend, hs_buffer *buffer, size_t offset, size_t bytes, hstep_error *error);

    /* Prepares calls, which are copied; the buffers they view must outlive the program. */
    hstep_status (*program_create)(hs_backend *backend, const hs_call *calls, size_t count, hs_program **program,
                                   hstep_error *error);
    void (*program_destroy)(hs_backend *backend, hs_program *program);

    /*
     * Submits calls first..first+count-1 in order, after everything submitted before. A program is run in few different
     * ranges (forward, backward, all), so that a backend may record each when it first meets it.
     */
    hstep_status (*program_run)(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                hstep_error *error);

    /* The same with exact levers alone, whatever the program was made with. NULL: there are no others. */
    hstep_status (*program_run_exact)(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                      hstep_error *error);

    /*
     * Waits. Where flags is not NULL, flags[i] becomes 1 when call i stored a nonfinite value (in an output or a part)
     * since the last finish, else 0, for all calls of the program; then the flags start afresh.
     */
    hstep_status (*program_finish)(hs_backend *backend, hs_program *program, uint32_t *flags, hstep_error *error);

    /*
     * The reference tier only, NULL elsewhere: the first nonfinite value of call `call` as it last ran, parts in the
     * order of computation before outputs in their order, lowest index first.
     */
    hs_fault (*locate)(const hs_backend *backend, const hs_program *program, size_t call);
} hs_backend_api;

/* The head of every backend's own struct. */
struct hs_backend {
    const hs_backend_api *api;
};

/* Runs the calls first..first+count-1 and waits for them; flags as in program_finish. */
static inline hstep_status hs_run_and_wait(hs_backend *backend, hs_program *program, size_t first, size_t count,
                                           uint32_t *flags, hstep_error *error) {
    HS_FORWARD(backend->api->program_run(backend, program, first, count, error));
    return backend->api->program_finish(backend, program, flags, error);
}

#endif
