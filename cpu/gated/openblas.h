/* OpenBLAS, loaded when the program runs, so that it is needed for nothing else. */
#ifndef HS_CPU_GATED_OPENBLAS_H
#define HS_CPU_GATED_OPENBLAS_H

#include "cpu/kernel.h"

/* What cblas_dgemm takes, in the numbers that every CBLAS gives these words. */
enum hs_cblas { HS_CBLAS_ROW_MAJOR = 101, HS_CBLAS_NO_TRANSPOSE = 111, HS_CBLAS_TRANSPOSE = 112 };

/* Threads that call the library at the same time; it has places for about twice as many. */
enum { HS_OPENBLAS_MOST_CALLERS = 64 };

/* The functions that are used; they stay loaded until the process ends. */
typedef struct hs_openblas {
    void (*dgemm)(int order, int a_form, int b_form, int m, int n, int k, double alpha, const double *a, int a_pitch,
                  const double *b, int b_pitch, double beta, double *y, int y_pitch);
    int (*threads)(void);
    void (*set_threads)(int threads);
    const char *(*core)(void);   /* name of the kernels that it chose for this processor */
    const char *(*config)(void); /* version and options of its build */
    void *(*take)(int place);    /* one of the buffers that its products work in; NULL where it is not exported */
    void (*give_back)(void *buffer);
} hs_openblas;

/* NULL where the library or one of the functions is missing, or there was no room for it. */
const hs_openblas *hs_openblas_load(void);

hstep_lever_state hs_openblas_detect(void);
void hs_openblas_describe(hs_lever_findings *findings);

/* Reserves what products on so many threads work in. Why that cannot be had, or NULL. */
const char *hs_openblas_refusal(unsigned threads);

/* What to say of kernels of that name on a processor that has, or lacks, AVX2 and AVX-512; empty where they suit it. */
void hs_openblas_remark(const char *core, bool avx2, bool avx512, char *text, size_t size);

/* How a product is cut for threads: rows x columns pieces. */
typedef struct hs_openblas_grid {
    size_t rows, columns;
} hs_openblas_grid;

/* cpu/gated/matmul_openblas_f64.c: y = op(a) op(b) in f64, a call of dgemm for each piece of y. */
hs_openblas_grid hs_openblas_cut(size_t m, size_t n, size_t k, unsigned threads);
bool hs_openblas_accepts(const hs_call *call);
hs_kernel hs_matmul_openblas_f64;

#endif
