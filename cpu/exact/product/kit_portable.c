/* 4x8 in f32 and 4x4 in f64 fill eight of the sixteen registers of SSE2; the others hold operands and products. */
#include <string.h>

#include "cpu/exact/half.h"
#include "cpu/exact/product/convert.h"
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

#define HS_REAL float
#define HS_KIT(name) name##_fp16
#define HS_ROWS 4
#define HS_COLUMNS 8
#define HS_OPERANDS(n, x, y) hs_represent(&hs_rounding_fp16, (n), (x), (y))
#define HS_RESULTS(n, x, y) hs_round_results(&hs_rounding_fp16, (n), (x), (y))
#define HS_HALF HSTEP_DTYPE_FP16
#define HS_FROM_HALF(half) (float)hs_widen_fp16(half)
#define HS_TO_HALF(value) hs_narrow_fp16((double)(value))
#include "cpu/exact/product/kit_portable.h"

#define HS_REAL float
#define HS_KIT(name) name##_bf16
#define HS_ROWS 4
#define HS_COLUMNS 8
#define HS_OPERANDS(n, x, y) hs_represent(&hs_rounding_bf16, (n), (x), (y))
#define HS_RESULTS(n, x, y) hs_round_results(&hs_rounding_bf16, (n), (x), (y))
#define HS_HALF HSTEP_DTYPE_BF16
#define HS_FROM_HALF(half) (float)hs_widen_bf16(half)
#define HS_TO_HALF(value) hs_narrow_bf16((double)(value))
#include "cpu/exact/product/kit_portable.h"

#define HS_REAL double
#define HS_KIT(name) name##_f64
#define HS_ROWS 4
#define HS_COLUMNS 4
#define HS_OPERANDS(n, x, y) copy_operands((n), (x), (y))
#define HS_RESULTS(n, x, y) copy_results((n), (x), (y))
#include "cpu/exact/product/kit_portable.h"
