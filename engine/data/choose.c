/* A token chosen from logits, with the same arithmetic on every processor. */
#include <stdbool.h>

#include <halfstep/data.h>

#include "precision/arithmetic.h"

/* The largest logit that is no NaN, lowest token first. */
static size_t largest(const double *logits, size_t vocabulary) {
    size_t best = 0;
    bool found = false;
    for (size_t i = 0; i < vocabulary; ++i) {
        if (logits[i] != logits[i] || (found && !(logits[i] > logits[best])))
            continue;
        best = i;
        found = true;
    }
    return best;
}

/* Relative to the largest, so that one logit of infinity is chosen and never becomes a NaN. */
static double weight(double logit, double top, double temperature) {
    if (logit != logit)
        return 0;
    return logit == top ? 1 : hs_exp((logit - top) / temperature);
}

int32_t hstep_choose_token(const double *logits, size_t vocabulary, double temperature, double uniform) {
    const size_t best = largest(logits, vocabulary);
    if (!(temperature > 0))
        return (int32_t)best;
    double total = 0;
    for (size_t i = 0; i < vocabulary; ++i)
        total += weight(logits[i], logits[best], temperature);
    double left = uniform * total;
    for (size_t i = 0; i < vocabulary; ++i) {
        const double part = weight(logits[i], logits[best], temperature);
        if (left < part)
            return (int32_t)i;
        left -= part;
    }
    return (int32_t)best; /* rounding left a remainder */
}
