#include "precision/gate.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static double hs_larger(double a, double b) { return b > a ? b : a; }

/* |a - b|, where what cannot be compared counts as infinitely far. */
static double hs_distance(double a, double b) {
    double distance = a == b ? 0 : fabs(a - b);
    return distance != distance ? INFINITY : distance;
}

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

double hs_f32_step(double v) {
    float nearest = (float)fabs(v);
    if (!isfinite(nearest))
        return (double)nearest;
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits += 1;
    float above;
    memcpy(&above, &bits, sizeof above);
    return (double)above - (double)nearest;
}

static size_t hs_argmax(size_t columns, const double *row) {
    size_t best = 0;
    for (size_t j = 1; j < columns; j++)
        if (row[j] > row[best])
            best = j;
    return best;
}

hs_comparison hs_compare(size_t rows, size_t columns, const double *ours, const double *theirs, const double *referee) {
    hs_comparison result = {0};
    for (size_t i = 0; i < rows * columns; i++) {
        result.largest = hs_larger(result.largest, fabs(referee[i]));
        result.error_f32 = hs_larger(result.error_f32, hs_distance(ours[i], theirs[i]));
        result.error_f64 = hs_larger(result.error_f64, hs_distance(ours[i], referee[i]));
        result.their_error = hs_larger(result.their_error, hs_distance(theirs[i], referee[i]));
    }
    result.f32_step = hs_f32_step(result.largest);
    for (size_t i = 0; columns > 0 && i < rows; i++)
        result.argmax_flips += hs_argmax(columns, ours + i * columns) != hs_argmax(columns, referee + i * columns);
    return result;
}
