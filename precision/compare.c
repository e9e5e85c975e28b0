#include "precision/compare.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "precision/distance.h"

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

hs_comparing hs_compare_begin(size_t columns, bool has_referee) {
    return (hs_comparing){.columns = columns,
                          .figures = {.has_referee = has_referee,
                                      .our_error = has_referee ? 0 : NAN,
                                      .their_error = has_referee ? 0 : NAN}};
}

static void hs_look_for_largest(hs_argmax *largest, size_t column, double value) {
    if (column == 0 || value > largest->value)
        *largest = (hs_argmax){value, column};
}

static void hs_compare_element(hs_comparing *c, double ours, double theirs, const double *referee) {
    hstep_comparison *f = &c->figures;
    const double other = referee != NULL ? *referee : theirs;
    f->elements++;
    f->different += memcmp(&ours, &theirs, sizeof ours) != 0;
    f->our_nonfinite += isfinite(ours) ? 0 : 1;
    f->their_nonfinite += isfinite(theirs) ? 0 : 1;
    f->largest = hs_larger(f->largest, fabs(other));
    f->error = hs_larger(f->error, hs_distance(ours, theirs));
    if (referee != NULL) {
        f->referee_nonfinite += isfinite(*referee) ? 0 : 1;
        f->our_error = hs_larger(f->our_error, hs_distance(ours, *referee));
        f->their_error = hs_larger(f->their_error, hs_distance(theirs, *referee));
    }
    hs_look_for_largest(&c->ours, c->column, ours);
    hs_look_for_largest(&c->other, c->column, other);
    if (++c->column < c->columns)
        return;
    c->column = 0;
    f->rows++;
    f->argmax_flips += c->ours.column != c->other.column;
}

void hs_compare_add(hs_comparing *c, size_t count, const double *ours, const double *theirs, const double *referee) {
    for (size_t i = 0; i < count; i++)
        hs_compare_element(c, ours[i], theirs[i], c->figures.has_referee ? &referee[i] : NULL);
}

hstep_comparison hs_compare_end(const hs_comparing *c) {
    hstep_comparison figures = c->figures;
    figures.f32_step = hs_f32_step(figures.largest);
    return figures;
}

hstep_claim hs_compare_judge(const hstep_comparison *c, hstep_comparison_rule rule, double target) {
    if (c->our_nonfinite > 0 || c->their_nonfinite > 0 || c->referee_nonfinite > 0)
        return HSTEP_CLAIM_OUTSIDE;
    if (c->different == 0)
        return HSTEP_CLAIM_EQUAL_BITS;
    if (rule == HSTEP_RULE_TARGET)
        return c->error <= target ? HSTEP_CLAIM_WITHIN_TARGET : HSTEP_CLAIM_OUTSIDE;
    return c->has_referee && c->our_error <= c->their_error ? HSTEP_CLAIM_NO_FARTHER : HSTEP_CLAIM_OUTSIDE;
}
