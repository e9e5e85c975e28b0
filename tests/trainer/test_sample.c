/* Generation, and the judgement of answers. */
#include <signal.h>
#include <string.h>

#include <criterion/criterion.h>

#include "trainer/text/sample.c"
#include "trainer/train/watching/interrupt.c"

enum { VOCABULARY = HSTEP_BYTE_VOCABULARY };

static hstep_error error;
static hstep_context *context;
static hstep_model *model;

static void make_model(void) {
    const hstep_context_options options = {.backend = HSTEP_BACKEND_CPU, .threads = 1, .levers = "exact"};
    cr_assert_eq(hstep_context_create(&options, &context, &error), HSTEP_OK, "%s", error.message);
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = VOCABULARY;
    config.width = 16;
    config.layers = 2;
    config.heads = 2;
    config.feed_forward = 16;
    cr_assert_eq(hstep_model_create_decoder(context, &config, &model, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(hstep_model_initialize(model, HSTEP_INIT_XAVIER, 3, &error), HSTEP_OK, "%s", error.message);
}

static void destroy_model(void) {
    hstep_model_destroy(model);
    hstep_context_destroy(context);
}

TestSuite(sample, .init = make_model, .fini = destroy_model);

/* The likeliest next token of exactly these tokens, without padding. */
static int32_t likeliest(const int32_t *tokens, size_t count) {
    static double logits[64 * VOCABULARY];
    const hstep_batch batch = {.sequences = 1, .length = count, .tokens = tokens};
    cr_assert_eq(hstep_model_output(model, &batch, logits, &error), HSTEP_OK, "%s", error.message);
    const double *last = logits + (count - 1) * VOCABULARY;
    int32_t best = 0;
    for (int32_t i = 1; i < VOCABULARY; ++i)
        best = last[i] > last[best] ? i : best;
    return best;
}

Test(sample, greedy_text_is_that_of_full_passes_as_far_as_the_context) {
    enum { PROMPTS = 3, KNOWN = 4, MORE = 9, LENGTH = KNOWN + MORE };
    const size_t contexts[] = {LENGTH - 1, 64};
    for (size_t c = 0; c < 2; ++c) {
        int32_t rows[PROMPTS * LENGTH];
        for (size_t i = 0; i < PROMPTS * LENGTH; ++i)
            rows[i] = (int32_t)(i * 37 % VOCABULARY);
        const hs_generation greedy = {.model = model, .context = contexts[c]};
        cr_assert_eq(hs_generate(&greedy, rows, PROMPTS, KNOWN, MORE, &error), HSTEP_OK, "%s", error.message);
        for (size_t i = 0; i < PROMPTS; ++i) {
            const int32_t *row = rows + i * LENGTH;
            for (size_t known = KNOWN; known < LENGTH; ++known)
                cr_assert_eq(row[known], likeliest(row, known), "context %zu, prompt %zu, place %zu", contexts[c], i,
                             known);
        }
    }
}

Test(sample, temperature_draws_differently_for_another_seed) {
    enum { MORE = 20 };
    int32_t rows[3][1 + MORE];
    for (size_t i = 0; i < 3; ++i) {
        rows[i][0] = 40;
        const hs_generation warm = {.model = model, .context = 8, .temperature = 1, .seed = i / 2};
        cr_assert_eq(hs_generate(&warm, rows[i], 1, 1, MORE, &error), HSTEP_OK, "%s", error.message);
    }
    cr_assert_arr_eq(rows[0], rows[1], sizeof rows[0]);
    cr_assert_arr_neq(rows[0], rows[2], sizeof rows[0]);
}

Test(sample, bytes_survive_tokens) {
    char bytes[256], back[257];
    int32_t tokens[258];
    for (int i = 0; i < 256; ++i)
        bytes[i] = (char)(unsigned char)i;
    hs_tokens_from_bytes(bytes, 256, tokens);
    tokens[256] = HSTEP_TOKEN_EOS;
    tokens[257] = HSTEP_TOKEN_BOS;
    cr_assert_eq(hs_bytes_from_tokens(tokens, 258, back), 256, "marks are no bytes");
    cr_assert_arr_eq(back, bytes, 256);
    cr_assert_eq(tokens[0], 2);
    cr_assert_eq(tokens[255], 257);
}

Test(sample, an_answer_is_right_when_it_ends_its_line) {
    static const struct {
        const char *row;
        size_t right;
    } answers[] = {
        {"\n37+48=85\n", 1}, {"\n37+48=84\n", 0}, {"\n37+48=850", 0}, {"\n37+48=8\n5", 0}, {"\n37+48=\n85", 0}};
    const hs_sum sum = {37, 48};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; ++i) {
        int32_t row[ROW];
        cr_assert_eq(strlen(answers[i].row), ROW);
        hs_tokens_from_bytes(answers[i].row, ROW, row);
        cr_expect_eq(count_right(row, &sum, 1), answers[i].right, "%s", answers[i].row);
    }
    int32_t marks[ROW];
    hs_tokens_from_bytes("\n37+48=85\n", ROW, marks);
    marks[PROMPT] = HSTEP_TOKEN_EOS;
    cr_expect_eq(count_right(marks, &sum, 1), 0);
}

/* Over more questions than one pass takes. */
Test(sample, a_model_that_has_learned_nothing_answers_no_sum_rightly) {
    hs_corpus corpus = {.question_count = 300, .questions = (hs_sum[300]){{0}}};
    for (size_t i = 0; i < 300; ++i)
        corpus.questions[i] = (hs_sum){10 + (unsigned)i % 40, 10 + (unsigned)i / 40};
    uint64_t correct = 99;
    cr_assert_eq(hs_count_correct(model, &corpus, &correct, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(correct, 0);
}

/* A model that is not there shows that it is not asked. */
Test(sample, nothing_is_computed_after_an_interrupt) {
    hs_interrupt_watch();
    cr_assert_not(hs_interrupted());
    raise(SIGTERM);
    cr_assert(hs_interrupted());
    int32_t row[8] = {40};
    const hs_generation generation = {.model = model, .context = 8};
    cr_assert_eq(hs_generate(&generation, row, 1, 1, 7, &error), HSTEP_OK);
    for (size_t i = 1; i < 8; ++i)
        cr_expect_eq(row[i], 0);
    hs_corpus corpus = {.question_count = 1, .questions = (hs_sum[]){{10, 10}}};
    uint64_t correct = 99;
    cr_assert_eq(hs_count_correct(NULL, &corpus, &correct, &error), HSTEP_OK);
    cr_assert_eq(correct, 0);
}
