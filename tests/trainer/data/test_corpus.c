/* The built-in corpus: right sums, all pairs, training and held-out problems apart, the same for the same seed. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "trainer/text/corpus.c"

/* seen[a][b]: how often the sum a+b stands in the lines from `text` on. Checks every line. */
static size_t count_lines(const char *text, size_t size, unsigned char seen[100][100]) {
    size_t lines = 0;
    for (size_t at = 0; at < size; ++lines) {
        char line[16] = "";
        const size_t length = strcspn(text + at, "\n");
        cr_assert_lt(length, sizeof line);
        memcpy(line, text + at, length);
        char *end;
        const unsigned long a = strtoul(line, &end, 10);
        cr_assert_eq(*end, '+', "%s", line);
        const unsigned long b = strtoul(end + 1, &end, 10);
        cr_assert_eq(*end, '=', "%s", line);
        const unsigned long sum = strtoul(end + 1, &end, 10);
        cr_assert_eq(*end, '\0', "%s", line);
        cr_assert(a >= 10 && a <= 99 && b >= 10 && b <= 99 && sum == a + b, "%s", line);
        ++seen[a][b];
        at += length + 1;
        cr_assert_leq(at, size, "the last line is whole");
    }
    return lines;
}

Test(corpus, holds_out_problems_with_their_mirror_images) {
    hs_corpus corpus;
    cr_assert(hs_corpus_create(1, 0.1, &corpus));
    static unsigned char trained[100][100], held[100][100];
    const size_t lines = count_lines(corpus.text, corpus.training_size, trained);
    cr_assert_eq(count_lines(corpus.text + corpus.training_size, corpus.size - corpus.training_size, held),
                 corpus.question_count);
    size_t pairs = 0, kinds = 0;
    for (unsigned a = 10; a < 100; ++a) {
        for (unsigned b = 10; b < 100; ++b) {
            if (a + b > 99) {
                cr_assert(trained[a][b] == 0 && held[a][b] == 0, "%u+%u has a longer sum", a, b);
                continue;
            }
            ++pairs;
            cr_assert_eq(trained[a][b] == 0, held[a][b] == 1, "%u+%u is in exactly one part", a, b);
            cr_assert_eq(held[a][b], held[b][a], "%u+%u and its mirror image go together", a, b);
            kinds += trained[a][b] != 0;
        }
    }
    cr_assert_eq(pairs, 3240);
    cr_assert_eq(kinds + corpus.question_count, pairs);
    cr_assert_eq(lines % kinds, 0, "every training problem stands as often as any other");
    /* A tenth of 3240, give or take four deviations. */
    cr_assert(corpus.question_count > pairs * 7 / 100 && corpus.question_count < pairs * 13 / 100, "%zu of %zu",
              corpus.question_count, pairs);
    for (size_t i = 0; i < corpus.question_count; ++i)
        cr_assert_eq(held[corpus.questions[i].a][corpus.questions[i].b], 1);
    hs_corpus_free(&corpus);
}

Test(corpus, is_a_function_of_its_seed) {
    hs_corpus one, again, other, unsplit;
    cr_assert(hs_corpus_create(5, 0.1, &one) && hs_corpus_create(5, 0.1, &again) && hs_corpus_create(6, 0.1, &other));
    cr_assert_eq(one.size, again.size);
    cr_assert_arr_eq(one.text, again.text, one.size);
    cr_assert(one.size != other.size || memcmp(one.text, other.text, one.size) != 0);
    cr_assert(hs_corpus_create(5, 0, &unsplit));
    cr_assert_eq(unsplit.question_count, 0);
    cr_assert_eq(unsplit.training_size, unsplit.size);
    hs_corpus_free(&one);
    hs_corpus_free(&again);
    hs_corpus_free(&other);
    hs_corpus_free(&unsplit);
}
