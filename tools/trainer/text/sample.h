/* Text that a model writes, and the share of sums it gets right. */
#ifndef HS_TRAINER_SAMPLE_H
#define HS_TRAINER_SAMPLE_H

#include <halfstep/halfstep.h>

#include "trainer/text/corpus.h"

typedef struct hs_generation {
    hstep_model *model;
    size_t context;     /* the model sees at most so many of the last tokens: see hstep_decoding_extend */
    double temperature; /* 0: greedy */
    uint64_t seed;
} hs_generation;

/*
 * Goes on from `count` prompts of `length` tokens, 1 at least, by `more` tokens each. `rows` is [count][length + more]
 * with the prompts in the first `length` places of each row. An interrupt ends it early: ask hs_interrupted.
 */
hstep_status hs_generate(const hs_generation *generation, int32_t *rows, size_t count, size_t length, size_t more,
                         hstep_error *error);

/* How many of the corpus's held-out sums greedy decoding answers right. An interrupt ends it early. */
hstep_status hs_count_correct(hstep_model *model, const hs_corpus *corpus, uint64_t *correct, hstep_error *error);

/* Bytes as tokens, and back; tokens that are no byte become nothing. The second returns the number of bytes. */
void hs_tokens_from_bytes(const char *bytes, size_t count, int32_t *tokens);
size_t hs_bytes_from_tokens(const int32_t *tokens, size_t count, char *bytes);

#endif
