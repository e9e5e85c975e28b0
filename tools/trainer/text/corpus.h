/*
 * The built-in corpus: lines such as 37+48=85, all pairs of two-digit numbers with a sum of two digits, in random
 * order, many times over. Some problems are held out, a pair together with its mirror image, so that right answers to
 * them can only come from having learned to add.
 */
#ifndef HS_TRAINER_CORPUS_H
#define HS_TRAINER_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of an answer with its line end. */
enum { HS_CORPUS_ANSWER = sizeof "85\n" - 1 };

typedef struct hs_sum {
    unsigned a, b; /* 10 or more, a + b at most 99 */
} hs_sum;

typedef struct hs_corpus {
    char *text; /* training lines, then held-out lines */
    size_t size, training_size;
    hs_sum *questions; /* the held-out problems, in the order of their lines */
    size_t question_count;
} hs_corpus;

/* A function of seed and share alone. False when there is no memory. */
bool hs_corpus_create(uint64_t seed, double held_out_share, hs_corpus *corpus);

void hs_corpus_free(hs_corpus *corpus);

#endif
