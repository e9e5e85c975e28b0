#include "precision/gate.h"

#include <math.h>

#include "precision/distance.h"

hs_gate hs_gate_measure(size_t count, const double *f, const double *r) {
    hs_gate gate = {.mean_rel_limit = 0.005};
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        total += fabs(r[i]);
        gate.max_abs = hs_larger(gate.max_abs, hs_distance(f[i], r[i]));
    }
    if (count == 0)
        return gate;
    gate.mean_ref = total / (double)count;
    gate.max_abs_limit = 0.01 * gate.mean_ref;
    if (!isfinite(gate.mean_ref) || gate.mean_ref == 0)
        return gate;
    double relative = 0;
    for (size_t i = 0; i < count; i++) {
        double rel = hs_distance(f[i], r[i]) / hs_larger(fabs(r[i]), gate.max_abs_limit);
        relative += rel;
        gate.max_rel = hs_larger(gate.max_rel, rel);
    }
    gate.mean_rel = relative / (double)count;
    gate.pass = gate.max_abs < gate.max_abs_limit && gate.mean_rel < gate.mean_rel_limit;
    return gate;
}

size_t hs_gate_cells(size_t count, const double *f, const double *r, const double *magnitude, size_t k, double step) {
    size_t broken = 0;
    for (size_t i = 0; i < count; i++)
        if (!(fabs(f[i] - r[i]) <= (double)k * step * magnitude[i]))
            broken++;
    return broken;
}
