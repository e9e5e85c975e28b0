/* OpenBLAS, loaded when the program runs, so that it is needed for nothing else. */
#ifndef HS_CPU_GATED_OPENBLAS_H
#define HS_CPU_GATED_OPENBLAS_H

#include "cpu/kernel.h"

/* What cblas_dgemm takes, in the numbers that every CBLAS gives these words. */
enum hs_cblas { HS_CBLAS_ROW_MAJOR = 101, HS_CBLAS_NO_TRANSPOSE = 111, HS_CBLAS_TRANSPOSE = 112 };

/* The functions that are used; they stay loaded until the process ends. */
typedef struct hs_openblas {
    void (*dgemm)(int order, int a_form, int b_form, int m, int n, int k, double alpha, const double *a, int a_pitch,
                  const double *b, int b_pitch, double beta, double *y, int y_pitch);
    void (*set_threads)(int threads);
    const char *(*core)(void);   /* name of the kernels that it chose for this processor */
    const char *(*config)(void); /* version and options of its build */
} hs_openblas;

/* NULL where the library or one of the functions is missing. */
const hs_openblas *hs_openblas_load(void);

hstep_lever_state hs_openblas_detect(void);
void hs_openblas_describe(hs_lever_findings *findings);

/* What to say of kernels of that name on a processor that has, or lacks, AVX2 and AVX-512; empty where they suit it. */
void hs_openblas_remark(const char *core, bool avx2, bool avx512, char *text, size_t size);

/* cpu/gated/matmul_openblas_f64.c: y = op(a) op(b) in f64, in one call of dgemm. */
bool hs_openblas_accepts(const hs_call *call);
hs_kernel hs_matmul_openblas_f64;

#endif
