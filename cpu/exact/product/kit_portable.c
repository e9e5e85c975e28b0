#include <string.h>

#include "cpu/exact/product/kit.h"
#include "cpu/exact/sums.h"

static inline void copy_operands(size_t count, const double *x, double *y) {
    for (size_t i = 0; i < count; i++)
        y[i] = x[i];
}

static inline uint64_t copy_results(size_t count, const double *x, double *y) {
    uint64_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        y[i] = x[i];
        seen |= hs_nonfinite(x[i]);
    }
    return seen;
}

/* 4x8 in f32 and 4x4 in f64 fill eight of the sixteen registers of SSE2; the others hold operands and products. */
#define HS_REAL float
#define HS_KIT(name) name##_f32
#define HS_ROWS 4
#define HS_COLUMNS 8
#define HS_OPERAND(rounding, n, x, y) hs_represent((rounding), (n), (x), (y))
#define HS_RESULTS(rounding, n, x, y) hs_round_results((rounding), (n), (x), (y))
#include "cpu/exact/product/kit_portable.h"
const hs_kit hs_kit_portable_f32 = {HS_ROWS,  HS_COLUMNS, sizeof(float), pack_f32, tile_f32,
                                    step_f32, load_f32,   keep_f32,      store_f32};
#undef HS_REAL
#undef HS_KIT
#undef HS_ROWS
#undef HS_COLUMNS
#undef HS_OPERAND
#undef HS_RESULTS

#define HS_REAL double
#define HS_KIT(name) name##_f64
#define HS_ROWS 4
#define HS_COLUMNS 4
#define HS_OPERAND(rounding, n, x, y) ((void)(rounding), copy_operands((n), (x), (y)))
#define HS_RESULTS(rounding, n, x, y) ((void)(rounding), copy_results((n), (x), (y)))
#include "cpu/exact/product/kit_portable.h"
const hs_kit hs_kit_portable_f64 = {HS_ROWS,  HS_COLUMNS, sizeof(double), pack_f64, tile_f64,
                                    step_f64, load_f64,   keep_f64,       store_f64};

const hs_kit *hs_kit_of(hstep_precision precision) {
    return precision == HSTEP_PRECISION_F64 ? &hs_kit_portable_f64 : &hs_kit_portable_f32;
}
