#include "precision/reduce.h"

static double hs_fold_lanes(double lanes[HS_SUM_LANES]) {
    for (size_t width = HS_SUM_LANES / 2; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++)
            lanes[j] = lanes[j] + lanes[j + width];
    return lanes[0];
}

double hs_sum_row(size_t count, const double *x) {
    double lanes[HS_SUM_LANES] = {0};
    for (size_t i = 0; i < count; i++)
        lanes[i % HS_SUM_LANES] += x[i];
    return hs_fold_lanes(lanes);
}

double hs_sum_tensor(size_t count, const double *x) {
    double lanes[HS_SUM_LANES] = {0};
    size_t row = 0;
    for (size_t first = 0; first < count; first += HS_SUM_ROW, row++) {
        size_t length = count - first < HS_SUM_ROW ? count - first : HS_SUM_ROW;
        lanes[row % HS_SUM_LANES] += hs_sum_row(length, x + first);
    }
    return hs_fold_lanes(lanes);
}
