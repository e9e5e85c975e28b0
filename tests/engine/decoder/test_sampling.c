/* The choice of a token: formulas by hand, and no number left to chance. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <halfstep/decoding.h>

enum { MOST = 8 };

static hstep_error error;

static int32_t choose(const hstep_sampling *sampling, const double *logits, size_t vocabulary, const int32_t *history,
                      size_t count, double uniform) {
    int32_t token = -1;
    cr_assert_eq(hstep_choose_token(sampling, logits, vocabulary, history, count, uniform, &token, &error), HSTEP_OK,
                 "%s", error.message);
    return token;
}

/* How often each token comes, over `draws` evenly spaced numbers. */
static void expect_counts(const hstep_sampling *sampling, const double *logits, size_t vocabulary, int draws,
                          const int *expected) {
    int counts[MOST] = {0};
    for (int i = 0; i < draws; ++i)
        ++counts[choose(sampling, logits, vocabulary, NULL, 0, (i + 0.5) / draws)];
    for (size_t i = 0; i < vocabulary; ++i)
        cr_expect_eq(counts[i], expected[i], "token %zu: %d, not %d", i, counts[i], expected[i]);
}

Test(sampling, takes_the_largest_logit_at_temperature_zero) {
    const hstep_sampling greedy = {0}, warm = {.temperature = 1};
    const double logits[] = {NAN, 1, 3, 3, -INFINITY};
    cr_assert_eq(choose(&greedy, logits, 5, NULL, 0, 0.9), 2, "the lowest among equals");
    const double infinite[] = {0, INFINITY, 5};
    cr_assert_eq(choose(&greedy, infinite, 3, NULL, 0, 0), 1);
    cr_assert_eq(choose(&warm, infinite, 3, NULL, 0, 0.999), 1);
    const double nothing[] = {NAN, NAN};
    cr_assert_eq(choose(&greedy, nothing, 2, NULL, 0, 0.5), 0);
    cr_assert_eq(choose(&warm, nothing, 2, NULL, 0, 0.5), 0);
    const double low[] = {NAN, -INFINITY, -INFINITY};
    cr_assert_eq(choose(&greedy, low, 3, NULL, 0, 0.5), 1);
}

Test(sampling, draws_by_softmax) {
    /* exp(log 1), exp(log 2), exp(log 5): shares 1/8, 2/8, 5/8. Temperature 1/2 squares them: 1/30, 4/30, 25/30. */
    const double logits[] = {log(1.0), log(2.0), NAN, log(5.0)};
    expect_counts(&(hstep_sampling){.temperature = 1}, logits, 4, 800, (int[]){100, 200, 0, 500});
    expect_counts(&(hstep_sampling){.temperature = 0.5}, logits, 4, 600, (int[]){20, 80, 0, 500});
}

/* Shares 1, 2, 3, 4, 6 of 16. */
static const double shares[] = {0, 0.6931471805599453, 1.0986122886681098, 1.3862943611198906, 1.791759469228055};

Test(sampling, keeps_the_k_largest) {
    hstep_sampling s = {.temperature = 1, .top_k = 2};
    expect_counts(&s, shares, 5, 1000, (int[]){0, 0, 0, 400, 600});
    s.top_k = 3;
    expect_counts(&s, shares, 5, 1300, (int[]){0, 0, 300, 400, 600});
    s.top_k = 5;
    expect_counts(&s, shares, 5, 1600, (int[]){100, 200, 300, 400, 600});
    s.top_k = 99;
    expect_counts(&s, shares, 5, 1600, (int[]){100, 200, 300, 400, 600});
    /* Of equals the lower tokens. */
    const double equal[] = {1, 2, 2, 2, 1};
    s.top_k = 2;
    expect_counts(&s, equal, 5, 100, (int[]){0, 50, 50, 0, 0});
}

Test(sampling, keeps_the_nucleus) {
    hstep_sampling s = {.temperature = 1, .top_p = 0.3};
    expect_counts(&s, shares, 5, 100, (int[]){0, 0, 0, 0, 100}); /* 6/16 are enough */
    s.top_p = 0.4;
    expect_counts(&s, shares, 5, 1000, (int[]){0, 0, 0, 400, 600}); /* 10/16 */
    s.top_p = 0.8;
    expect_counts(&s, shares, 5, 1300, (int[]){0, 0, 300, 400, 600}); /* 13/16 = 0.8125 */
    s.top_p = 0.82;
    expect_counts(&s, shares, 5, 1500, (int[]){0, 200, 300, 400, 600});
    s.top_p = 1;
    expect_counts(&s, shares, 5, 1600, (int[]){100, 200, 300, 400, 600});
    s.top_p = 1e-300;
    expect_counts(&s, shares, 5, 100, (int[]){0, 0, 0, 0, 100});
    /* Four equal weights add up exactly: half of them is two tokens, no third. */
    const double equal[] = {7, 7, 7, 7};
    s.top_p = 0.5;
    expect_counts(&s, equal, 4, 100, (int[]){50, 50, 0, 0});
}

/* The nucleus is taken of what top-k left, and both of what the temperature made. */
Test(sampling, cuts_in_order) {
    hstep_sampling s = {.temperature = 1, .top_k = 3, .top_p = 0.75};
    expect_counts(&s, shares, 5, 1000, (int[]){0, 0, 0, 400, 600}); /* 10/13 = 0.77; of all it would be 10/16 */
    s = (hstep_sampling){.temperature = 0.5, .top_p = 0.5};         /* 36 of 66 */
    expect_counts(&s, shares, 5, 100, (int[]){0, 0, 0, 0, 100});
}

/* Two logits so near to each other that their weights are one number. */
Test(sampling, of_the_largest_alone_is_greedy) {
    const double near[] = {3, nextafter(3, 4), 3, -1};
    const hstep_sampling first = {.temperature = 5, .top_k = 1}, greedy = {0};
    for (int i = 0; i < 10; ++i)
        cr_assert_eq(choose(&first, near, 4, NULL, 0, i / 10.0), 1);
    cr_assert_eq(choose(&greedy, near, 4, NULL, 0, 0), 1);
}

Test(sampling, penalises_what_was_there) {
    const double logits[] = {4, 3, -1, -1.5};
    const int32_t history[] = {0, 0, 2, -7, 99};
    hstep_sampling s = {.repetition_penalty = 1.3};
    cr_assert_eq(choose(&s, logits, 4, history, 5, 0), 0, "4 / 1.3 = 3.08");
    s.repetition_penalty = 1.34;
    cr_assert_eq(choose(&s, logits, 4, history, 5, 0), 1, "4 / 1.34 = 2.99: once, however often it was there");
    s.repetition_penalty = 2;
    cr_assert_eq(choose(&s, logits, 4, NULL, 0, 0), 0);
    const double negative[] = {-1, -1.5};
    cr_assert_eq(choose(&s, negative, 2, history, 1, 0), 1, "-1 * 2 is below -1.5");
    s.repetition_penalty = 0.5;
    cr_assert_eq(choose(&s, logits, 4, (int32_t[]){1}, 1, 0), 1, "below 1 it favours: 3 / 0.5");
    /* It comes before the temperature: log 4 / 2 = log 2 against log 2. */
    s = (hstep_sampling){.temperature = 1, .repetition_penalty = 2};
    const double warm[] = {log(4), log(2)};
    cr_assert_eq(choose(&s, warm, 2, history, 1, 0.4999), 0);
    cr_assert_eq(choose(&s, warm, 2, history, 1, 0.5001), 1);
}

Test(sampling, a_large_vocabulary_is_cut_as_sorting_would) {
    enum { VOCABULARY = 5000, K = 37 };
    static double logits[VOCABULARY];
    for (size_t i = 0; i < VOCABULARY; i++)
        logits[i] = (double)(i * 7919 % VOCABULARY) * 1e-3; /* a permutation: 7919 is prime to 5000 */
    const hstep_sampling s = {.temperature = 1, .top_k = K};
    bool seen[K] = {false};
    for (int i = 0; i < 4000; i++) {
        const int32_t token = choose(&s, logits, VOCABULARY, NULL, 0, (i + 0.5) / 4000);
        const size_t rank = VOCABULARY - 1 - (size_t)token * 7919 % VOCABULARY;
        cr_assert_lt(rank, K);
        seen[rank] = true;
    }
    for (size_t i = 0; i < K; i++)
        cr_assert(seen[i], "rank %zu", i);
}

Test(sampling, refuses_what_is_out_of_range) {
    const hstep_sampling bad[] = {
        {.temperature = -1}, {.temperature = NAN}, {.temperature = INFINITY},  {.top_p = -0.1},
        {.top_p = 1.1},      {.top_p = NAN},       {.repetition_penalty = -1}, {.repetition_penalty = NAN}};
    const char *const names[] = {"temperature", "temperature", "temperature", "top-p",
                                 "top-p",       "top-p",       "penalty",     "penalty"};
    const double logits[] = {1, 2};
    int32_t token = 55;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert_eq(hstep_choose_token(&bad[i], logits, 2, NULL, 0, 0, &token, &error), HSTEP_ERROR_ARGUMENT);
        cr_expect_not_null(strstr(error.message, names[i]), "%s", error.message);
    }
    const hstep_sampling good = {0};
    cr_assert_eq(hstep_choose_token(&good, logits, 0, NULL, 0, 0, &token, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_choose_token(&good, logits, 2, NULL, 3, 0, &token, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(token, 55);
}
