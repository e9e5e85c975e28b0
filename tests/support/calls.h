/*
 * One operation as a test sees it, on any backend.
 *
 * Intended usage:
 *  1. hs_test_description d = hs_test_describe(HS_OP_...); change shapes, precision, forms, pitch as wanted.
 *  2. hs_test_call *t = hs_test_call_create(&d): a call with the operands that the operation has, values on the host,
 *     filled by hs_test_call_fill. Indices, targets and positions are always legal; change them, or any value, through
 *     t->inputs[i] and t->outputs[i].
 *  3. hs_test_result *r = hs_test_call_run(t, backend), as often as wanted: each run has fresh buffers, so t never
 *     changes. Compare with hs_test_differences.
 *
 * Operands in 16 bits: set the bits HS_TEST_INPUT(i) and HS_TEST_OUTPUT(i) of d.compact. Their format is that of
 * d.precision, whether the operation heeds it or not. hs_test_call_run then hands them over in 16 bits,
 * hs_test_call_run_wide the same call in f64 slots: the inputs as the numbers that the 16 bits stand for, the outputs
 * rounded afterwards. Both must give the same bits and flags, and a NaN in 16 bits must be the one quiet NaN of the
 * policy.
 *
 * Host values are dense and row-major whatever the pitch. On the backend, rows of a pitched operand are followed by
 * filler, every operand stands at an offset, and filler stands around it: NaN, which a kernel that reads too far drags
 * into its result. hs_test_call_run counts filler and inputs that a kernel changed.
 */
#ifndef HS_TESTS_SUPPORT_CALLS_H
#define HS_TESTS_SUPPORT_CALLS_H

#include "engine/backend.h"

#define HS_TEST_INPUT(i) (1U << (i))
#define HS_TEST_OUTPUT(i) (1U << (HS_MAX_INPUTS + (i)))

/* Shapes, in the words of engine/backend.h. Each operation reads the fields that it has a use for. */
typedef struct hs_test_description {
    hs_operation operation;
    hstep_precision precision;
    size_t rows;                     /* R; m of matmul and transpose */
    size_t columns;                  /* d, f, V of cross-entropy; n of matmul and transpose */
    size_t inner;                    /* k of matmul */
    size_t table;                    /* V of gather; P, rows of the rotary tables; rows of a state less R */
    size_t sequences, queries, keys; /* attention: rows per sequence */
    size_t heads, kv_heads, head_width;
    hstep_transpose a_form, b_form;
    size_t pitch;          /* elements added to every row of the operands that may have a pitch */
    bool in_place;         /* output 0 is the input that it may be: add, gather_backward, cross_entropy_backward */
    bool without_base;     /* gather_backward with two inputs */
    bool random_positions; /* attention: any position below `keys`; else queries stand at the end, one after another */
    bool decay;            /* adamw */
    unsigned compact;      /* operands in 16 bits: HS_TEST_INPUT(i) | HS_TEST_OUTPUT(i) | ... */
    double epsilon, factor;
} hs_test_description;

typedef enum hs_test_fill {
    HS_TEST_UNIFORM, /* [-1, 1) */
    HS_TEST_SMALL,   /* [-0.2, 0.2) */
    HS_TEST_POWERS,  /* plus or minus a power of two from 1/8 to 8: small sums are exact */
    HS_TEST_WIDE,    /* plus or minus 2^e * [1, 2), e in [-40, 15]: rounds to subnormals and zeros of fp16 */
    HS_TEST_HUGE,    /* magnitudes that overflow fp16 here and there, and f32 in products; finite in f64 */
    HS_TEST_SPECIAL  /* uniform, with signed zeros, subnormals, infinities and NaN here and there */
} hs_test_fill;

/* One operand on the host; data is dense. */
typedef struct hs_test_operand {
    hs_view view; /* without buffer */
    bool is_index;
    bool compact; /* a value counts as its half of `format` */
    hstep_format format;
    size_t elements;
    double *f64;  /* NULL for an index operand */
    int32_t *i32; /* NULL for a value operand */
} hs_test_operand;

typedef struct hs_test_call {
    hs_test_description description;
    hs_call call; /* views without buffers */
    hs_test_operand inputs[HS_MAX_INPUTS];
    hs_test_operand outputs[HS_MAX_OUTPUTS]; /* values before the call: adamw reads them, store_rows keeps some */
} hs_test_call;

typedef struct hs_test_result {
    hstep_status status; /* of the first backend function that failed */
    hstep_error error;
    uint32_t flag;  /* of the nonfinite store */
    hs_fault fault; /* on backends that locate */
    size_t output_count;
    size_t elements[HS_MAX_OUTPUTS];
    double *outputs[HS_MAX_OUTPUTS]; /* dense; of a compact operand, what its 16 bits stand for */
    double *gradient;                /* adamw: input 0 afterwards */
    size_t spoiled;                  /* bytes of filler or of inputs that changed and must not */
} hs_test_result;

/* A small uneven shape that fits the operation; precision f64, epsilon 1e-5, factor 0.37. */
hs_test_description hs_test_describe(hs_operation operation);

hs_test_description hs_test_describe_matmul(hstep_precision precision, size_t rows, size_t columns, size_t inner);

/* Filled with HS_TEST_UNIFORM, seed 1. Fails the running test where memory runs out. */
hs_test_call *hs_test_call_create(const hs_test_description *description);
void hs_test_call_destroy(hs_test_call *call);

/*
 * Draws every input anew (and w and m of adamw, and the state of store_rows). Values that an operation needs in a range
 * stay there whatever the fill: log gets positive ones, adamw ordinary scalars and v >= 0.
 */
void hs_test_call_fill(hs_test_call *call, hs_test_fill fill, uint64_t seed);

hs_test_result *hs_test_call_run(const hs_test_call *call, hs_backend *backend);

/* The same without 16-bit storage: what a call with compact operands is held against. */
hs_test_result *hs_test_call_run_wide(const hs_test_call *call, hs_backend *backend);

/* The same for a call that must succeed: fails the running test where it does not or where it spoils anything. */
hs_test_result *hs_test_call_run_well(const hs_test_call *call, hs_backend *backend);
void hs_test_result_destroy(hs_test_result *result);

/* Whether the bits are equal, one NaN being as good as another. */
bool hs_test_same_value(double a, double b);

/* Cells of all outputs (and of the gradient) that are not the same; describes the first in `text`. */
size_t hs_test_differences(const hs_test_result *a, const hs_test_result *b, char *text, size_t size);

/* Cells of b that are the same in neither of two results. */
size_t hs_test_differences_from_both(const hs_test_result *a, const hs_test_result *other, const hs_test_result *b,
                                     char *text, size_t size);

#endif
