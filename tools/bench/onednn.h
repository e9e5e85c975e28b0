/* Products by oneDNN, for comparison; built where it is installed. */
#ifndef HS_BENCH_ONEDNN_H
#define HS_BENCH_ONEDNN_H

#include <stdbool.h>

typedef struct hs_onednn hs_onednn;

/*
 * y[m][n] = op(a) op(b) on row-major operands of f32 or, where `half`, of bf16 with a result in bf16. NULL where oneDNN
 * is not built in or cannot do it here.
 */
hs_onednn *hs_onednn_create(bool half, int m, int n, int k, bool a_turned, bool b_turned, void *a, void *b, void *y);
void hs_onednn_destroy(hs_onednn *product);

/* Computes it, and waits. */
void hs_onednn_run(hs_onednn *product);

#endif
