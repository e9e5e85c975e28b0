/* How far two numbers are from each other. */
#ifndef HS_PRECISION_DISTANCE_H
#define HS_PRECISION_DISTANCE_H

#include <math.h>

/* `a` where b is NaN. */
static inline double hs_larger(double a, double b) { return b > a ? b : a; }

/* |a - b|, where what cannot be compared counts as infinitely far. */
static inline double hs_distance(double a, double b) {
    const double distance = a == b ? 0 : fabs(a - b);
    return distance != distance ? INFINITY : distance;
}

#endif
