/* Kernels that compute element i of an output from elements i of one or two inputs. */
#ifndef HS_CPU_EXACT_ELEMENTWISE_MAP_H
#define HS_CPU_EXACT_ELEMENTWISE_MAP_H

#include "cpu/exact/kernels.h"
#include "cpu/exact/sums.h"
#include "cpu/exact/view.h"

/* y from a and b, which are contiguous; b is a where there is one input. Returns the hs_nonfinite of y. */
typedef uint64_t hs_map_span(const hs_attributes *attributes, size_t count, const double *a, const double *b,
                             double *y);

/* Runs `map` over all elements, with threads from `threshold` elements on. */
void HS_EXACT(map)(const hs_call *call, hs_kernel_run *run, unsigned inputs, size_t threshold, hs_map_span *map);

/* Defines a hs_map_span by its expression of a[i] and b[i]. "simd" also says that an output in place of its input is no
 * reason for a scalar loop. */
#define HS_MAP_SPAN(name, expression)                                                                                  \
    static uint64_t name(const hs_attributes *attributes, size_t count, const double *a, const double *b, double *y) { \
        uint64_t seen = 0;                                                                                             \
        (void)attributes, (void)b;                                                                                     \
        _Pragma("omp simd reduction(| : seen)") for (size_t i = 0; i < count; i++) {                                   \
            const double value = (expression);                                                                         \
            y[i] = value;                                                                                              \
            seen |= hs_nonfinite(value);                                                                               \
        }                                                                                                              \
        return seen;                                                                                                   \
    }

#endif
