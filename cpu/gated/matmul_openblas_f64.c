/* Products in f64 by OpenBLAS: the sums of a cell run along k in an order of its kernels' choosing, with fused steps.
 */
#include <limits.h>
#include <pthread.h>

#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"
#include "cpu/gated/openblas.h"

/*
 * The number of threads is the library's, for the whole process. How the work is cut decides which of its kernels
 * computes a cell, so another context must not change it before the product has begun.
 */
static pthread_mutex_t one_product = PTHREAD_MUTEX_INITIALIZER;

static bool fits(const hs_view *view) {
    return hs_rows(view) <= INT_MAX && hs_columns(view) <= INT_MAX && hs_pitch(view) <= INT_MAX;
}

/* The gate judges A B, A Bt and At B; nobody has looked at both turned. */
bool hs_openblas_accepts(const hs_call *call) {
    if (call->attributes.a_form == HSTEP_TRANSPOSE && call->attributes.b_form == HSTEP_TRANSPOSE)
        return false;
    return fits(&call->inputs[0]) && fits(&call->inputs[1]) && fits(&call->outputs[0]);
}

static bool any_nonfinite(const hs_call *call, size_t m, size_t n, unsigned threads) {
    uint64_t seen = 0;
    (void)threads;
#pragma omp parallel for num_threads(threads) reduction(| : seen) if (m * n >= HS_PARALLEL_CHEAP)
    for (size_t i = 0; i < m; i++) {
        const double *row = hs_out_row(call, 0, i);
        for (size_t j = 0; j < n; j++)
            seen |= hs_nonfinite(row[j]);
    }
    return hs_any_nonfinite(seen);
}

/* The pitch of a matrix with one row may be anything; dgemm wants it to span a row. */
static int pitch_of(const hs_view *view) {
    const size_t pitch = hs_pitch(view), columns = hs_columns(view);
    return (int)(pitch > columns ? pitch : columns);
}

void hs_matmul_openblas_f64(const hs_call *call, hs_kernel_run *run) {
    const hs_openblas *blas = hs_openblas_load();
    const hs_view *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    const bool a_turned = call->attributes.a_form == HSTEP_TRANSPOSE,
               b_turned = call->attributes.b_form == HSTEP_TRANSPOSE;
    const size_t m = hs_rows(y), n = hs_columns(y), k = a_turned ? hs_rows(a) : hs_columns(a);
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++)
                hs_out_row(call, 0, i)[j] = 0.0;
        return;
    }
    (void)pthread_mutex_lock(&one_product);
    blas->set_threads((int)run->threads);
    blas->dgemm(HS_CBLAS_ROW_MAJOR, a_turned ? HS_CBLAS_TRANSPOSE : HS_CBLAS_NO_TRANSPOSE,
                b_turned ? HS_CBLAS_TRANSPOSE : HS_CBLAS_NO_TRANSPOSE, (int)m, (int)n, (int)k, 1.0, hs_in(call, 0),
                pitch_of(a), hs_in(call, 1), pitch_of(b), 0.0, hs_out(call, 0), pitch_of(y));
    (void)pthread_mutex_unlock(&one_product);
    run->nonfinite = run->nonfinite || any_nonfinite(call, m, n, run->threads);
}
