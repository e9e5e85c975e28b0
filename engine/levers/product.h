/* One product on a backend, again and again, for the gate. */
#ifndef HS_ENGINE_LEVERS_PRODUCT_H
#define HS_ENGINE_LEVERS_PRODUCT_H

#include "engine/backend.h"

/* The three orientations that training has: A B, A Bt and At B. */
enum { HS_FORMS = 3 };
extern const hstep_transpose hs_forms[HS_FORMS][2];

typedef struct hs_product {
    hs_backend *backend;
    hstep_precision precision;
    size_t m, n, k;
    hs_buffer *a, *b, *y;
    double *turned; /* room for the larger operand */
} hs_product;

hstep_status hs_product_create(hs_backend *backend, hstep_precision precision, size_t m, size_t n, size_t k,
                               hs_product *product, hstep_error *error);
void hs_product_destroy(hs_product *product);

/* Uploads dense a[m][k] and b[k][n] in the layout of an orientation. */
hstep_status hs_product_load(hs_product *product, size_t form, const double *a, const double *b, hstep_error *error);

/* A program for the orientation, with the kernels that are active now. `sums`: see hs_attributes. */
hstep_status hs_product_program(const hs_product *product, size_t form, bool sums, hs_program **program,
                                hstep_error *error);

/* Runs it over a result full of NaN, so that what is not written shows, and reads that into y[m][n]. */
hstep_status hs_product_run(const hs_product *product, hs_program *program, double *y, bool *nonfinite,
                            hstep_error *error);

#endif
