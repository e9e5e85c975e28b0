/* What the gate feeds a lever with. */
#ifndef HS_ENGINE_LEVERS_GATE_INPUTS_H
#define HS_ENGINE_LEVERS_GATE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include <halfstep/types.h>

typedef enum hs_inputs {
    HS_INPUTS_UNIFORM,    /* in [-0.2, 0.2) */
    HS_INPUTS_RUN_LIKE,   /* activations with a few large channels against small weights */
    HS_INPUTS_HUGE,       /* near the format's largest: k * max|a| * max|w| stays below the sums' */
    HS_INPUTS_CANCELLING, /* one row in 16 whose products cancel to zero */
    HS_INPUTS_SUBNORMAL,  /* subnormal operands, against small integers and large powers of two */
    HS_INPUTS_NONFINITE,  /* infinities and NaNs among zeros and ordinary numbers */
    HS_INPUTS_COUNT
} hs_inputs;

/* Such as "cancelling", a constant. */
const char *hs_inputs_name(hs_inputs inputs);

/* Whether the gate's two metrics are taken on them, beside the bound of every cell. */
bool hs_inputs_decide(hs_inputs inputs);

/* Dense a[m][k] and b[k][n], which the precision represents as they are. The same arguments give the same numbers. */
void hs_inputs_fill(hs_inputs inputs, hstep_precision precision, size_t m, size_t n, size_t k, double *a, double *b);

/* What is subnormal in the precision's operands becomes a zero of its sign. */
void hs_inputs_flush(hstep_precision precision, size_t count, double *x);

#endif
