/* Token shards: formats, damage at every place, vocabularies, borders between files, memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <halfstep/halfstep.h>

#include "support/folder.h"
#include "support/shards.h"

static hstep_error error;

TestSuite(shards, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

static hstep_status try_load(const char *path, const hstep_dataset_options *options, hstep_dataset **dataset) {
    *dataset = NULL;
    error = (hstep_error){.status = HSTEP_OK};
    return hstep_dataset_load(&path, 1, options, dataset, &error);
}

static hstep_dataset *load(const char *path, const hstep_dataset_options *options) {
    hstep_dataset *dataset;
    cr_assert_eq(try_load(path, options, &dataset), HSTEP_OK, "%s", error.message);
    return dataset;
}

/* Refused with every one of the words, up to a NULL. */
static void expect_refused(const char *path, const hstep_dataset_options *options, const char *const *words) {
    hstep_dataset *dataset;
    cr_expect_eq(try_load(path, options, &dataset), HSTEP_ERROR_INPUT_FILE, "%s", path);
    cr_expect_null(dataset);
    cr_expect_not_null(strstr(error.message, path), "%s", error.message);
    for (; *words != NULL; ++words)
        cr_expect_not_null(strstr(error.message, *words), "no '%s' in: %s", *words, error.message);
    hstep_dataset_destroy(dataset);
}
#define REFUSED(path, options, ...) expect_refused(path, options, (const char *const[]){__VA_ARGS__, NULL})

static const hstep_dataset_options RAW_16 = {.token_type = HSTEP_TOKENS_UINT16, .vocabulary = 65536};
static const hstep_dataset_options RAW_32 = {.token_type = HSTEP_TOKENS_UINT32, .vocabulary = 1 << 20};
static const hstep_dataset_options BYTES = {.token_type = HSTEP_TOKENS_BYTES};

Test(shards, a_shard_of_llm_c_is_known_by_its_header) {
    static const uint16_t tokens[] = {50256, 0, 258, 1, 50255, 7, 8, 9, 10, 11};
    hs_test_write_shard("s.bin", tokens, 10);
    hstep_dataset *dataset = load("s.bin", NULL);
    cr_expect_eq(hstep_dataset_token_type(dataset), HSTEP_TOKENS_UINT16);
    cr_expect_eq(hstep_dataset_vocabulary(dataset), 50257);
    cr_expect_eq(hstep_dataset_tokens(dataset), 10);
    cr_expect_eq(hstep_dataset_training_tokens(dataset), 9);
    int32_t read[10];
    cr_assert_eq(hstep_dataset_read(dataset, 0, 10, read, &error), HSTEP_OK);
    for (size_t i = 0; i < 10; ++i)
        cr_expect_eq(read[i], tokens[i], "a token is no byte: nothing is added");
    hstep_data_file file;
    cr_assert_eq(hstep_dataset_file(dataset, 0, &file, &error), HSTEP_OK);
    cr_expect_str_eq(file.name, "s.bin");
    cr_expect_str_eq(file.format, "llm.c");
    cr_expect_eq(file.largest, 50256);
    cr_expect_eq(file.tokens, 10);
    /* The checksum is that of the tokens' bytes, which are little-endian in memory too. */
    hstep_dataset *bytes;
    cr_assert_eq(hstep_dataset_from_bytes(tokens, sizeof tokens, &bytes, &error), HSTEP_OK);
    cr_expect_eq(hstep_dataset_checksum(dataset), hstep_dataset_checksum(bytes));
    cr_expect_eq(file.checksum, hstep_dataset_checksum(bytes));
    hstep_dataset_destroy(bytes);
    hstep_dataset_destroy(dataset);
    dataset = load("s.bin", &BYTES);
    cr_expect_eq(hstep_dataset_tokens(dataset), 1044, "bytes takes the header too");
    hstep_dataset_destroy(dataset);
}

Test(shards, the_second_header_of_llm_c_has_tokens_of_four_bytes) {
    unsigned char shard[1024 + 8] = {0};
    const uint32_t numbers[] = {20240801, 7, 2}, tokens[] = {128255, 70000};
    memcpy(shard, numbers, sizeof numbers);
    memcpy(shard + 1024, tokens, sizeof tokens);
    hs_test_write_bytes("s.bin", shard, sizeof shard);
    hstep_dataset *dataset = load("s.bin", NULL);
    cr_expect_eq(hstep_dataset_token_type(dataset), HSTEP_TOKENS_UINT32);
    cr_expect_eq(hstep_dataset_vocabulary(dataset), 128256);
    int32_t read[2];
    cr_assert_eq(hstep_dataset_read(dataset, 0, 2, read, &error), HSTEP_OK);
    cr_expect(read[0] == 128255 && read[1] == 70000);
    hstep_dataset_destroy(dataset);
    REFUSED("s.bin", &RAW_16, "uint32", "not uint16");
}

Test(shards, raw_tokens_are_read_as_they_are_told) {
    const uint16_t two[] = {1, 65535, 3, 4, 5};
    const uint32_t four[] = {1, 1048575, 3};
    hs_test_write_bytes("two.bin", two, sizeof two);
    hs_test_write_bytes("four", four, sizeof four);
    hstep_dataset *dataset = load("two.bin", &RAW_16);
    int32_t read[5];
    cr_assert_eq(hstep_dataset_read(dataset, 0, 5, read, &error), HSTEP_OK);
    cr_expect(read[0] == 1 && read[1] == 65535 && read[4] == 5);
    cr_expect_eq(hstep_dataset_vocabulary(dataset), 65536);
    hstep_dataset_destroy(dataset);
    dataset = load("four", &RAW_32);
    cr_assert_eq(hstep_dataset_tokens(dataset), 3);
    cr_assert_eq(hstep_dataset_read(dataset, 0, 3, read, &error), HSTEP_OK);
    cr_expect(read[0] == 1 && read[1] == 1048575 && read[2] == 3);
    hstep_dataset_destroy(dataset);
    const hstep_dataset_options own = {.token_type = HSTEP_TOKENS_UINT16, .vocabulary = HSTEP_VOCABULARY_OF_DATA};
    dataset = load("two.bin", &own);
    cr_expect_eq(hstep_dataset_vocabulary(dataset), 65536);
    hstep_dataset_destroy(dataset);
    REFUSED("two.bin", NULL, "byte offset 0", "uint16 or uint32");
    REFUSED("two.bin", &RAW_32, "byte offset 8", "2 of 4 bytes");
    const hstep_dataset_options unsaid = {.token_type = HSTEP_TOKENS_UINT16};
    REFUSED("two.bin", &unsaid, "vocabulary", "65536 at least");
}

Test(shards, a_token_outside_the_vocabulary_is_named_with_its_place) {
    enum { COUNT = 200000 }; /* more than one step of the pass */
    uint16_t *tokens = calloc(COUNT, sizeof *tokens);
    static const size_t places[] = {0, 1, 65535, 65536, 131071, COUNT - 1};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
        tokens[places[i]] = 50257;
        tokens[COUNT - 1] = 60000; /* not the first, but for the last case */
        hs_test_write_shard("s.bin", tokens, COUNT);
        char token[32], place[32];
        snprintf(token, sizeof token, "token %d ", places[i] == COUNT - 1 ? 60000 : 50257);
        snprintf(place, sizeof place, "byte offset %zu ", 1024 + 2 * places[i]);
        REFUSED("s.bin", NULL, token, place, "vocabulary of 50257");
        tokens[places[i]] = tokens[COUNT - 1] = 50256;
    }
    hs_test_write_shard("s.bin", tokens, COUNT);
    hstep_dataset_destroy(load("s.bin", NULL));
    const hstep_dataset_options small = {.vocabulary = 100};
    REFUSED("s.bin", &small, "token 50256 ", "byte offset 1024 ", "vocabulary of 100");
    const uint32_t negative[] = {0, UINT32_C(0x80000000)};
    hs_test_write_bytes("raw", negative, sizeof negative);
    const hstep_dataset_options widest = {.token_type = HSTEP_TOKENS_UINT32, .vocabulary = INT32_MAX};
    REFUSED("raw", &widest, "token 2147483648 ", "byte offset 4 ");
    free(tokens);
}

Test(shards, cut_at_any_length_it_is_refused) {
    static const uint16_t tokens[] = {3, 1, 4, 1, 5};
    unsigned char shard[1034], longer[1035] = {0};
    const size_t size = hs_test_make_shard(tokens, 5, shard);
    cr_assert_eq(size, sizeof shard);
    for (size_t cut = 0; cut < size; ++cut) {
        hs_test_write_bytes("s.bin", shard, cut);
        char place[40];
        snprintf(place, sizeof place, "byte offset %zu", cut < 4 ? 0 : cut);
        /* Less than the magic is no shard of llm.c, and still no text by its name. */
        REFUSED("s.bin", NULL, place, cut == 0 ? "empty" : cut < 4 ? "no magic" : "truncated");
        if (cut % 2 == 1 && cut > 4)
            REFUSED("s.bin", &RAW_16, "truncated");
    }
    memcpy(longer, shard, size);
    hs_test_write_bytes("s.bin", longer, sizeof longer);
    REFUSED("s.bin", NULL, "1 bytes too many", "byte offset 1034");
}

Test(shards, wrong_headers_are_refused) {
    static const uint16_t tokens[] = {3, 1, 4, 1, 5};
    static const struct {
        size_t place;
        uint32_t number;
        const char *words[2];
    } wrong[] = {{0, 20240522, {"no magic", "byte offset 0"}}, {4, 2, {"version 2", "byte offset 4"}},
                 {8, 0, {"no tokens", "byte offset 8"}},       {8, UINT32_MAX, {"2^31", "byte offset 8"}},
                 {8, 4, {"2 bytes too many", "1032"}},         {8, 6, {"truncated at byte offset 1034", "1036"}}};
    unsigned char shard[1034];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        const size_t size = hs_test_make_shard(tokens, 5, shard);
        memcpy(shard + wrong[i].place, &wrong[i].number, 4);
        hs_test_write_bytes("s.bin", shard, size);
        REFUSED("s.bin", NULL, wrong[i].words[0], wrong[i].words[1]);
    }
}

Test(shards, files_of_several_kinds_are_refused) {
    static const uint16_t tokens[] = {3, 1, 4, 1, 5};
    hs_test_write_shard("a.bin", tokens, 5);
    hs_test_write_file("b", "text");
    static const char *const paths[] = {"a.bin", "b"}, *const turned[] = {"b", "a.bin"};
    hstep_dataset *dataset = NULL;
    cr_expect_eq(hstep_dataset_load(paths, 2, NULL, &dataset, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect_not_null(strstr(error.message, "'b'"), "%s", error.message);
    cr_expect_eq(hstep_dataset_load(turned, 2, NULL, &dataset, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect_not_null(strstr(error.message, "'a.bin'"), "%s", error.message);
    const hstep_dataset_options text = {.vocabulary = 300}, bad_type = {.token_type = (hstep_token_type)9},
                                vast = {.vocabulary = (size_t)1 << 31};
    REFUSED("b", &text, "258", "300");
    cr_expect_eq(try_load("b", &bad_type, &dataset), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(try_load("b", &vast, &dataset), HSTEP_ERROR_ARGUMENT);
    cr_expect_null(dataset);
}

/* A token tells its place: shard s begins at 1000 * s. */
static hstep_dataset *load_three(const size_t *counts) {
    static const char *const names[] = {"1.bin", "2.bin", "3.bin"};
    uint16_t tokens[500];
    for (size_t s = 0; s < 3; ++s) {
        for (size_t i = 0; i < counts[s]; ++i)
            tokens[i] = (uint16_t)(1000 * s + i);
        hs_test_write_shard(names[s], tokens, counts[s]);
    }
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_load(names, 3, NULL, &dataset, &error), HSTEP_OK, "%s", error.message);
    return dataset;
}

Test(shards, no_window_crosses_a_border) {
    enum { LENGTH = 7, MOST = 200 };
    static const size_t counts[][3] = {{50, 1, 60}, {8, 8, 8}, {7, 100, 15}, {1, 2, 300}};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
        hstep_dataset *dataset = load_three(counts[c]);
        cr_assert_eq(hstep_dataset_hold_out(dataset, 0, &error), HSTEP_OK);
        size_t expected = 0;
        for (size_t s = 0; s < 3; ++s)
            expected += (counts[c][s] - 1) / LENGTH;
        const size_t windows = hstep_dataset_training_windows(dataset, LENGTH);
        cr_assert_eq(windows, expected);
        int32_t tokens[MOST * LENGTH], targets[MOST * LENGTH];
        for (uint64_t epoch = 0; epoch < 20; ++epoch) {
            cr_assert_eq(hstep_dataset_batch(dataset, 3, epoch * windows, windows, LENGTH, tokens, targets, &error),
                         HSTEP_OK);
            unsigned char predicted[3][500] = {{0}};
            for (size_t i = 0; i < windows * LENGTH; ++i) {
                cr_assert_eq(targets[i], tokens[i] + 1);
                cr_assert_lt((size_t)targets[i] % 1000, counts[c][targets[i] / 1000]);
                cr_assert_eq(predicted[targets[i] / 1000][targets[i] % 1000]++, 0, "once an epoch");
                if (i % LENGTH != 0)
                    cr_assert_eq(tokens[i], targets[i - 1]);
            }
        }
        hstep_dataset_destroy(dataset);
    }
}

Test(shards, evaluation_covers_the_tail_of_every_shard_once) {
    enum { LENGTH = 4, MOST = 100 };
    static const size_t counts[] = {30, 9, 12};
    hstep_dataset *dataset = load_three(counts);
    for (size_t training = 1; training < 50; ++training) {
        cr_assert_eq(hstep_dataset_split_at(dataset, training, &error), HSTEP_OK);
        const size_t windows = hstep_dataset_evaluation_windows(dataset, LENGTH, 0);
        int32_t tokens[MOST * LENGTH], targets[MOST * LENGTH];
        cr_assert_eq(hstep_dataset_evaluation_batch(dataset, LENGTH, 0, 0, windows, tokens, targets, &error), HSTEP_OK);
        unsigned char predicted[3][500] = {{0}};
        size_t seen = 0, expected = 0;
        for (size_t i = 0; i < windows * LENGTH; ++i) {
            if (targets[i] == -1)
                continue;
            cr_assert_eq(targets[i], tokens[i] + 1);
            cr_assert_eq(predicted[targets[i] / 1000][targets[i] % 1000]++, 0);
            ++seen;
        }
        for (size_t s = 0, first = 0; s < 3; first += counts[s++]) {
            const size_t trained = training <= first ? 0 : training - first;
            expected += trained >= counts[s] ? 0 : counts[s] - trained - 1;
        }
        cr_expect_eq(seen, expected, "training on %zu", training);
    }
    hstep_dataset_destroy(dataset);
}

Test(shards, token_frequencies_are_counted_over_the_vocabulary) {
    static const uint16_t tokens[] = {2, 2, 0, 3};
    hs_test_write_bytes("raw", tokens, sizeof tokens);
    const hstep_dataset_options options = {.token_type = HSTEP_TOKENS_UINT16, .vocabulary = 4};
    hstep_dataset *dataset = load("raw", &options);
    cr_assert_eq(hstep_dataset_split_at(dataset, 3, &error), HSTEP_OK);
    double loss;
    cr_assert_eq(hstep_dataset_unigram_loss(dataset, &loss, &error), HSTEP_OK);
    cr_expect_float_eq(loss, 1.9459101490553132, 1e-13, "log 7: one of 3 + 4"); /* the token was never seen */
    hstep_dataset_destroy(dataset);
}

static size_t peak_resident(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* A file of 256 MiB, read as a whole and then by windows from all over it. */
Test(shards, memory_does_not_grow_with_a_file) {
    enum { LENGTH = 256, SEQUENCES = 64 };
    const size_t size = (size_t)1 << 28, room = (size_t)80 << 20;
    const int descriptor = open("raw", O_CREAT | O_WRONLY, 0600);
    cr_assert_geq(descriptor, 0);
    cr_assert_eq(ftruncate(descriptor, (off_t)size), 0); /* zeros, and no blocks */
    cr_assert_eq(close(descriptor), 0);
    const size_t before = peak_resident();
    hstep_dataset *dataset = load("raw", &RAW_16);
    cr_assert_eq(hstep_dataset_tokens(dataset), size / 2);
    static int32_t tokens[SEQUENCES * LENGTH], targets[SEQUENCES * LENGTH];
    for (uint64_t i = 0; i < 200; ++i)
        cr_assert_eq(hstep_dataset_batch(dataset, 1, i * SEQUENCES, SEQUENCES, LENGTH, tokens, targets, &error),
                     HSTEP_OK);
    cr_expect_lt(peak_resident() - before, room);
    hstep_dataset_destroy(dataset);
}
