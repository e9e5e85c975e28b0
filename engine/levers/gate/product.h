/* One product on a backend, again and again, for the gate. */
#ifndef HS_ENGINE_LEVERS_GATE_PRODUCT_H
#define HS_ENGINE_LEVERS_GATE_PRODUCT_H

#include "engine/backend.h"

/* The three orientations that training has: A B, A Bt and At B. */
enum { HS_FORMS = 3 };
extern const hstep_transpose hs_forms[HS_FORMS][2];

/* How the operands of a product stand in memory. */
typedef struct hs_storage {
    const char *name;
    bool a_half, b_half, y_half; /* in 16 bits, else in f64 */
    bool pitched;                /* gaps stand behind the rows */
} hs_storage;

/* The plain one first, then the compact one; neither has gaps. In f64 those in 16 bits do not exist. */
enum { HS_STORAGES = 6, HS_STORAGES_DENSE = 2 };
extern const hs_storage hs_storages[HS_STORAGES];

typedef struct hs_product {
    hs_backend *backend;
    hstep_precision precision;
    size_t m, n, k;
    const hs_storage *storage; /* of what is loaded */
    size_t form;
    hs_buffer *a, *b, *y;
    void *room; /* for a part of an operand, or the whole result, as it stands in a buffer */
} hs_product;

hstep_status hs_product_create(hs_backend *backend, hstep_precision precision, size_t m, size_t n, size_t k,
                               hs_product *product, hstep_error *error);
void hs_product_destroy(hs_product *product);

/* Whether the backend takes products whose operands stand so. */
bool hs_product_can_stand(const hs_product *product, const hs_storage *storage);

/* Uploads dense a[m][k] and b[k][n] in the layout of an orientation, with NaNs in the gaps. */
hstep_status hs_product_load(hs_product *product, const hs_storage *storage, size_t form, const double *a,
                             const double *b, hstep_error *error);

/* A program for what is loaded, as often as `count` says, at most HS_PRODUCT_CALLS, with the kernels that are active
 * now. `sums`: see hs_attributes; they are in f64. */
enum { HS_PRODUCT_CALLS = 64 };
hstep_status hs_product_program(const hs_product *product, bool sums, size_t count, hs_program **program,
                                hstep_error *error);

/* What a run left behind beside its result. */
typedef struct hs_product_traces {
    bool nonfinite; /* the flag was raised */
    size_t strays;  /* elements of the gaps that were written */
} hs_product_traces;

/* Runs it over a result full of NaN, so that what is not written shows, and reads that into y[m][n]. */
hstep_status hs_product_run(const hs_product *product, hs_program *program, bool sums, double *y,
                            hs_product_traces *traces, hstep_error *error);

#endif
