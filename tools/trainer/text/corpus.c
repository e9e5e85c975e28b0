#include "trainer/text/corpus.h"

#include <stdio.h>
#include <stdlib.h>

#include <halfstep/data.h>

/* Sums of two digits keep every line as long as the others, which lets a small model learn in a minute. */
enum { LOW = 10, LARGEST_SUM = 99, HIGH = LARGEST_SUM - LOW, PAIRS = (HIGH - LOW + 1) * (HIGH - LOW + 2) / 2 };

enum { ROUNDS = 16, LINE = sizeof "37+48=85\n" - 1 };

/* Random streams that no training step uses. */
#define STREAM_SPLIT (UINT64_MAX - 1)
#define STREAM_SHUFFLE (UINT64_MAX - 100)

static bool is_held_out(uint64_t seed, double share, unsigned a, unsigned b) {
    const unsigned low = a < b ? a : b, high = a < b ? b : a;
    return (double)(hstep_random_at(seed, STREAM_SPLIT, low * 100 + high) >> 11) * 0x1p-53 < share;
}

/* Fisher and Yates. */
static void shuffle(hs_sum *sums, size_t count, uint64_t seed, uint64_t round) {
    for (size_t i = count; i > 1; --i) {
        const size_t j = (size_t)(hstep_random_at(seed, STREAM_SHUFFLE - round, i) % i);
        const hs_sum kept = sums[i - 1];
        sums[i - 1] = sums[j];
        sums[j] = kept;
    }
}

static void write_lines(hs_corpus *corpus, const hs_sum *sums, size_t count) {
    for (size_t i = 0; i < count; ++i)
        corpus->size += (size_t)snprintf(corpus->text + corpus->size, LINE + 1, "%u+%u=%u\n", sums[i].a, sums[i].b,
                                         sums[i].a + sums[i].b);
}

bool hs_corpus_create(uint64_t seed, double held_out_share, hs_corpus *corpus) {
    hs_sum *trained = malloc(PAIRS * sizeof *trained);
    *corpus = (hs_corpus){
        .text = malloc((size_t)PAIRS * ROUNDS * LINE + 1),
        .questions = malloc(PAIRS * sizeof *corpus->questions),
    };
    if (trained == NULL || corpus->text == NULL || corpus->questions == NULL) {
        free(trained);
        hs_corpus_free(corpus);
        return false;
    }
    size_t count = 0;
    for (unsigned a = LOW; a <= HIGH; ++a) {
        for (unsigned b = LOW; a + b <= LARGEST_SUM; ++b) {
            if (is_held_out(seed, held_out_share, a, b))
                corpus->questions[corpus->question_count++] = (hs_sum){a, b};
            else
                trained[count++] = (hs_sum){a, b};
        }
    }
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        shuffle(trained, count, seed, round);
        write_lines(corpus, trained, count);
    }
    corpus->training_size = corpus->size;
    shuffle(corpus->questions, corpus->question_count, seed, 0);
    write_lines(corpus, corpus->questions, corpus->question_count);
    free(trained);
    return true;
}

void hs_corpus_free(hs_corpus *corpus) {
    free(corpus->text);
    free(corpus->questions);
    *corpus = (hs_corpus){0};
}
