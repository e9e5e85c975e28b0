/* `trainer trace-forward`: what is in its file, where weights and tokens come from, and what it refuses. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <halfstep/halfstep.h>

#include "support/program.h"

TestSuite(trace_forward, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

#define SMALL "--layers", "1", "--width", "32", "--heads", "4", "--kv-heads", "2", "--feed-forward", "24"
#define TRACE(...) HS_TEST_RUN("trace-forward", "--quiet", "--threads", "1", __VA_ARGS__)

#define EXPECT_STATUS(run, wanted, words)                                                                              \
    do {                                                                                                               \
        hs_test_program made = run;                                                                                    \
        cr_expect_eq(made.status, wanted, "%d: %s", made.status, made.err);                                            \
        cr_expect_not_null(strstr(made.err, words), "no '%s' in: %s", words, made.err);                                \
        cr_expect_eq(made.out_size, 0);                                                                                \
        hs_test_program_free(&made);                                                                                   \
    } while (0)

static hstep_tensor_file *open_trace(const char *path) {
    hstep_tensor_file *file = NULL;
    hstep_error error = {0};
    cr_assert_eq(hstep_tensor_file_open(path, &file, &error), HSTEP_OK, "%s", error.message);
    cr_assert_eq(hstep_tensor_file_verify(file, &error), HSTEP_OK, "%s", error.message);
    return file;
}

static void expect_shape(const hstep_tensor_file *file, const char *name, size_t rows, size_t columns) {
    hstep_tensor_info info;
    const size_t index = hstep_tensor_file_find(file, name);
    cr_assert_neq(index, SIZE_MAX, "%s", name);
    cr_assert_eq(hstep_tensor_file_tensor(file, index, &info, NULL), HSTEP_OK);
    cr_expect_eq(info.storage, HSTEP_STORAGE_F64);
    cr_expect(info.rank == 2 && info.dims[0] == rows && info.dims[1] == columns, "%s", name);
}

/* All numbers of a tensor, of which there are `count`. */
static double *read_all(const hstep_tensor_file *file, const char *name, size_t count) {
    double *values = calloc(count, sizeof *values);
    hstep_error error = {0};
    cr_assert_not_null(values);
    cr_assert_eq(hstep_tensor_file_read(file, hstep_tensor_file_find(file, name), 0, count, values, &error), HSTEP_OK,
                 "%s: %s", name, error.message);
    return values;
}

Test(trace_forward, names_and_shapes) {
    EXPECT_STATUS(TRACE(SMALL, "--gradients", "--context", "6", "--precision", "bf16"), 0, "");
    hstep_tensor_file *file = open_trace("trace.safetensors");
    cr_expect_eq(hstep_tensor_file_count(file), 2 + 19 + 1 + 11, "inputs, operations, probabilities, gradients");
    cr_expect_str_eq(hstep_tensor_file_text(file, "schema"), "halfstep.trace/1");
    cr_expect_str_eq(hstep_tensor_file_text(file, "precision"), "bf16-fp32");
    cr_expect_str_eq(hstep_tensor_file_text(file, "weights"), "integers");
    expect_shape(file, "tokens", 2, 6);
    expect_shape(file, "targets", 2, 6);
    expect_shape(file, "token_embedding", 12, 32);
    expect_shape(file, "blocks.0.attention.key", 12, 16);
    expect_shape(file, "blocks.0.attention", 12, 32);
    expect_shape(file, "blocks.0.attention_residual", 12, 32);
    expect_shape(file, "blocks.0.feed_forward.activation", 12, 24);
    expect_shape(file, "blocks.0.output", 12, 32);
    expect_shape(file, "final_norm", 12, 32);
    expect_shape(file, "logits", 12, 258);
    expect_shape(file, "probabilities", 12, 258);
    expect_shape(file, "gradient.token_embedding.weight", 258, 32);
    expect_shape(file, "gradient.blocks.0.feed_forward.down.weight", 32, 24);
    cr_expect_eq(hstep_tensor_file_find(file, "head"), SIZE_MAX);
    hstep_tensor_file_close(file);
}

/* The formula of docs/comparing.md by hand: its first numbers, computed apart. */
/* Up to the place of the exception everything is f64; there it is bf16. */
Test(trace_forward, precision_by_place) {
    EXPECT_STATUS(TRACE(SMALL, "--context", "6", "--levers", "none", "--out", "f64"), 0, "");
    EXPECT_STATUS(TRACE(SMALL, "--context", "6", "--levers", "none", "--out", "mixed", "--precision-for", "head=bf16"),
                  0, "");
    hstep_tensor_file *f64 = open_trace("f64"), *mixed = open_trace("mixed");
    cr_expect_str_eq(hstep_tensor_file_text(f64, "precision"), "f64");
    cr_expect_str_eq(hstep_tensor_file_text(mixed, "precision"), "bf16-fp32");
    cr_expect_str_eq(hstep_tensor_file_text(mixed, "precision_by_place"), "f64, head=bf16");
    double *before = read_all(f64, "final_norm", 12 * 32), *same = read_all(mixed, "final_norm", 12 * 32),
           *wide = read_all(f64, "logits", 12 * 258), *narrow = read_all(mixed, "logits", 12 * 258);
    cr_expect_arr_eq(before, same, 12 * 32 * sizeof *before);
    size_t rounded = 0;
    for (size_t i = 0; i < 12 * 258; ++i) {
        cr_assert_eq(narrow[i], hstep_decode(HSTEP_BF16, hstep_encode(HSTEP_BF16, narrow[i])));
        rounded += wide[i] < narrow[i] || wide[i] > narrow[i];
    }
    cr_expect_gt(rounded, 12 * 200);
    double *all[] = {before, same, wide, narrow};
    for (size_t i = 0; i < 4; ++i)
        free(all[i]);
    hstep_tensor_file_close(f64);
    hstep_tensor_file_close(mixed);
    EXPECT_STATUS(TRACE(SMALL, "--precision-for", "heat=bf16", "--out", "none"), 2,
                  "See: trainer trace-forward --help");
}

Test(trace_forward, integers_are_those_of_the_formula) {
    EXPECT_STATUS(TRACE(SMALL, "--context", "4", "--batch-size", "1"), 0, "");
    hstep_tensor_file *file = open_trace("trace.safetensors");
    double *tokens = read_all(file, "tokens", 4), *targets = read_all(file, "targets", 4);
    uint32_t x[5];
    for (uint32_t i = 0; i < 5; ++i) {
        x[i] = (uint32_t)(i * 2654435769ULL + 1);
        for (int round = 0; round < 3; ++round)
            x[i] = (uint32_t)((x[i] ^ x[i] >> 16) * 2654435769ULL);
        x[i] ^= x[i] >> 16;
    }
    for (size_t i = 0; i < 4; ++i) {
        cr_expect_eq(tokens[i], (double)(x[i] % 258));
        cr_expect_eq(targets[i], (double)(x[i + 1] % 258));
    }
    double *embedding = read_all(file, "token_embedding", 128);
    for (size_t i = 0; i < 128; ++i) {
        const double steps = embedding[i] * 0x1p17;
        cr_expect(steps == (double)(int)steps && steps >= -32768 && steps < 32768, "16 bits below 1/4: 4^2 <= 32");
    }
    free(tokens);
    free(targets);
    free(embedding);
    hstep_tensor_file_close(file);
}

Test(trace_forward, weights_of_a_checkpoint_and_of_an_export) {
    hs_test_write_file("text", "The quick brown fox jumps over the lazy dog, and so on and so forth until evening.");
    EXPECT_STATUS(HS_TEST_RUN("train", "--quiet", "--threads", "1", "--steps", "2", SMALL, "--context", "8",
                              "--batch-size", "2", "--out", "run", "--data", "text", "--sample-tokens", "0"),
                  0, "");
    EXPECT_STATUS(HS_TEST_RUN("export", "run", "--dtype", "f64", "--out", "weights", "--quiet"), 0, "");
    EXPECT_STATUS(TRACE("--weights", "run", "--data", "text", "--out", "a"), 0, "");
    EXPECT_STATUS(TRACE("--weights", "weights", "--heads", "4", "--data", "text", "--out", "b"), 0, "");
    hstep_tensor_file *a = open_trace("a"), *b = open_trace("b");
    double *first = read_all(a, "logits", 64 * 258), *second = read_all(b, "logits", 64 * 258);
    cr_expect_eq(memcmp(first, second, 64 * 258 * sizeof *first), 0);
    cr_expect_str_eq(hstep_tensor_file_text(a, "weights"), "file");
    cr_expect_str_eq(hstep_tensor_file_text(a, "tokens"), "data");
    double *tokens = read_all(a, "tokens", 64);
    cr_expect(tokens[0] == 'T' + 2 && tokens[4] == 'q' + 2);
    free(first);
    free(second);
    free(tokens);
    hstep_tensor_file_close(a);
    hstep_tensor_file_close(b);
    EXPECT_STATUS(TRACE("--weights", "weights"), 2, "give --heads");
    EXPECT_STATUS(TRACE("--weights", "run", "--width", "64"), 2, "--width 64");
    EXPECT_STATUS(TRACE("--weights", "weights", "--heads", "4", "--out", "weights", "--overwrite"), 2, "itself");
    EXPECT_STATUS(TRACE("--weights", "weights", "--heads", "3"), 3, "do not divide width");
    EXPECT_STATUS(TRACE("--weights", "text"), 3, "'text'");
    EXPECT_STATUS(TRACE("--weights", "a", "--heads", "4"), 3, "not those of a decoder");
}

Test(trace_forward, mistakes_are_named) {
    EXPECT_STATUS(TRACE("more"), 2, "unexpected word 'more'");
    EXPECT_STATUS(TRACE("--width", "30", "--heads", "4"), 2, "do not divide width 30");
    EXPECT_STATUS(TRACE("--loss-scale", "3", "--gradients"), 2, "--loss-scale 3 is no power of two");
    EXPECT_STATUS(TRACE("--loss-scale", "2"), 2, "give --gradients");
    EXPECT_STATUS(TRACE("--weights", "nowhere"), 3, "nowhere");
    EXPECT_STATUS(TRACE("--data", "nowhere"), 3, "nowhere");
    hs_test_write_file("trace.safetensors", "something else");
    EXPECT_STATUS(TRACE(SMALL), 4, "--overwrite");
    EXPECT_STATUS(TRACE(SMALL, "--overwrite"), 0, "");
    EXPECT_STATUS(TRACE(SMALL, "--out", "no/such/folder"), 4, "no/such/folder");
    EXPECT_STATUS(TRACE(SMALL, "--gradients", "--precision", "fp16", "--loss-scale", "16777216", "--out", "x"), 1,
                  "smaller --loss-scale");
    cr_expect_not(hs_test_exists("x"));
    hs_test_write_file("short", "ab");
    EXPECT_STATUS(TRACE("--data", "short", "--out", "y"), 3, "1 window");
}
