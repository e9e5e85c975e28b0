/*
 * A token chosen from logits, with the same arithmetic on every processor. Tokens are cut off by a heap rather than by
 * sorting: a vocabulary is large, and what stays of it is small.
 */
#include <halfstep/decoding.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/error.h"
#include "precision/arithmetic.h"

typedef struct choice {
    size_t vocabulary;
    double *logits;  /* by token: after the penalty */
    double *weights; /* by token; 0 where it is cut off */
    int32_t *heap;   /* tokens, the one of the largest logit on top */
    size_t heap_count;
    bool *marked; /* by token: the history has it */
} choice;

hstep_status hstep_sampling_check(const hstep_sampling *s, hstep_error *error) {
    HS_RETURN_IF(s == NULL, error, HSTEP_ERROR_ARGUMENT, "no way of sampling was given");
    HS_RETURN_IF(!(s->temperature >= 0) || !isfinite(s->temperature), error, HSTEP_ERROR_ARGUMENT,
                 "the temperature is %g; give 0 or more", s->temperature);
    HS_RETURN_IF(!(s->top_p >= 0 && s->top_p <= 1), error, HSTEP_ERROR_ARGUMENT,
                 "top-p is %g; give a number above 0 and at most 1", s->top_p);
    HS_RETURN_IF(!(s->repetition_penalty >= 0) || !isfinite(s->repetition_penalty), error, HSTEP_ERROR_ARGUMENT,
                 "the repetition penalty is %g; give a number above 0", s->repetition_penalty);
    return HSTEP_OK;
}

/* ---- Logits and weights ---- */

static void penalise(const choice *c, double penalty, const int32_t *history, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (history[i] < 0 || (size_t)history[i] >= c->vocabulary || c->marked[history[i]])
            continue;
        double *logit = &c->logits[history[i]];
        *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
        c->marked[history[i]] = true;
    }
}

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

/* ---- Cutting off ---- */

/* By logits: those that differ may have one weight. A NaN comes last. */
static bool precedes(const choice *c, int32_t a, int32_t b) {
    const double x = c->logits[a], y = c->logits[b];
    if (x > y || x < y || isnan(x) != isnan(y))
        return x > y || (isnan(y) && !isnan(x));
    return a < b;
}

static void sink(choice *c, size_t at) {
    for (size_t child; (child = 2 * at + 1) < c->heap_count; at = child) {
        if (child + 1 < c->heap_count && precedes(c, c->heap[child + 1], c->heap[child]))
            child++;
        if (!precedes(c, c->heap[child], c->heap[at]))
            return;
        const int32_t kept = c->heap[at];
        c->heap[at] = c->heap[child];
        c->heap[child] = kept;
    }
}

static void build_heap(choice *c) {
    c->heap_count = c->vocabulary;
    for (size_t i = 0; i < c->vocabulary; i++)
        c->heap[i] = (int32_t)i;
    for (size_t i = c->vocabulary / 2; i-- > 0;)
        sink(c, i);
}

/* Takes the token of the largest logit off the heap. */
static int32_t take(choice *c) {
    const int32_t top = c->heap[0];
    c->heap[0] = c->heap[--c->heap_count];
    sink(c, 0);
    return top;
}

/* The `k` largest stay; returns the sum of their weights. */
static double keep_largest(choice *c, size_t k) {
    double sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += c->weights[take(c)];
    for (size_t i = 0; i < c->heap_count; i++)
        c->weights[c->heap[i]] = 0;
    return sum;
}

/* The fewest of the largest stay whose weights add up to `wanted` or more. */
static void keep_sum(choice *c, double wanted) {
    double sum = 0;
    build_heap(c);
    do
        sum += c->weights[take(c)];
    while (sum < wanted && c->heap_count > 0);
    for (size_t i = 0; i < c->heap_count; i++)
        c->weights[c->heap[i]] = 0;
}

static void cut(choice *c, const hstep_sampling *s) {
    const bool by_sum = s->top_p > 0 && s->top_p < 1;
    double sum = 0;
    if (s->top_k > 0 && s->top_k < c->vocabulary) {
        build_heap(c);
        sum = keep_largest(c, s->top_k);
    } else {
        for (size_t i = 0; by_sum && i < c->vocabulary; i++)
            sum += c->weights[i];
    }
    if (by_sum)
        keep_sum(c, s->top_p * sum);
}

/* ---- The choice ---- */

static size_t draw(const choice *c, size_t best, double uniform) {
    double total = 0;
    for (size_t i = 0; i < c->vocabulary; ++i)
        total += c->weights[i];
    double left = uniform * total;
    for (size_t i = 0; i < c->vocabulary; ++i) {
        if (left < c->weights[i])
            return i;
        left -= c->weights[i];
    }
    return best; /* rounding left a remainder */
}

static size_t choose(choice *c, const hstep_sampling *s, const double *logits, const int32_t *history, size_t count,
                     double uniform) {
    for (size_t i = 0; i < c->vocabulary; i++)
        c->logits[i] = logits[i];
    if (s->repetition_penalty > 0)
        penalise(c, s->repetition_penalty, history, count);
    const size_t best = largest(c->logits, c->vocabulary);
    if (!(s->temperature > 0))
        return best;
    for (size_t i = 0; i < c->vocabulary; i++)
        c->weights[i] = weight(c->logits[i], c->logits[best], s->temperature);
    cut(c, s);
    return draw(c, best, uniform);
}

hstep_status hstep_choose_token(const hstep_sampling *sampling, const double *logits, size_t vocabulary,
                                const int32_t *history, size_t history_count, double uniform, int32_t *token,
                                hstep_error *error) {
    HS_RETURN_IF(logits == NULL || token == NULL || (history == NULL && history_count > 0), error, HSTEP_ERROR_ARGUMENT,
                 "hstep_choose_token needs logits, the history that it counts, and a place");
    HS_RETURN_IF(vocabulary < 1 || vocabulary > INT32_MAX, error, HSTEP_ERROR_ARGUMENT,
                 "a vocabulary of %zu tokens; give 1 to 2^31 - 1", vocabulary);
    HS_FORWARD(hstep_sampling_check(sampling, error));
    choice c = {.vocabulary = vocabulary,
                .logits = malloc(vocabulary * sizeof *c.logits),
                .weights = malloc(vocabulary * sizeof *c.weights),
                .heap = malloc(vocabulary * sizeof *c.heap),
                .marked = calloc(vocabulary, sizeof *c.marked)};
    const bool there = c.logits != NULL && c.weights != NULL && c.heap != NULL && c.marked != NULL;
    if (there)
        *token = (int32_t)choose(&c, sampling, logits, history, history_count, uniform);
    free(c.logits);
    free(c.weights);
    free(c.heap);
    free(c.marked);
    return there ? HSTEP_OK : hs_fail_memory(error, "the choice of a token");
}
