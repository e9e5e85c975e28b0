/* Texts as tokens: loading, the split, batches, evaluation windows, the unigram yardstick, choosing a token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <halfstep/halfstep.h>

#include "support/program.h"

static hstep_error error;

static hstep_dataset *from_bytes(const void *bytes, size_t size) {
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_from_bytes(bytes, size, &dataset, &error), HSTEP_OK, "%s", error.message);
    return dataset;
}

/* Byte i has the value i (mod 256), so that a token tells its position. */
static hstep_dataset *counting(size_t size) {
    unsigned char *bytes = malloc(size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (unsigned char)i;
    hstep_dataset *dataset = from_bytes(bytes, size);
    free(bytes);
    return dataset;
}

Test(data, words_fit_the_number_of_tokens) {
    hstep_dataset *one = counting(1), *two = counting(2);
    cr_assert_eq(hstep_dataset_check(one, 4, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect(strstr(error.message, "has 1 token, of which 1 is ") != NULL, "%s", error.message);
    cr_assert_eq(hstep_dataset_check(two, 4, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect(strstr(error.message, "has 2 tokens, of which 2 are ") != NULL, "%s", error.message);
    hstep_dataset_destroy(one);
    hstep_dataset_destroy(two);
}

Test(data, holds_out_the_last_tenth) {
    hstep_dataset *dataset = counting(205);
    cr_assert_eq(hstep_dataset_tokens(dataset), 205);
    cr_assert_eq(hstep_dataset_training_tokens(dataset), 185);
    cr_assert_eq(hstep_dataset_hold_out(dataset, 0.5, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_training_tokens(dataset), 103);
    const double refused[] = {-0.1, 1, NAN, INFINITY};
    for (size_t i = 0; i < 4; ++i)
        cr_assert_eq(hstep_dataset_hold_out(dataset, refused[i], &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_dataset_split_at(dataset, 206, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(hstep_dataset_training_tokens(dataset), 103, "a refusal changes nothing");
    cr_assert_eq(hstep_dataset_split_at(dataset, 0, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_training_windows(dataset, 1), 0);
    cr_assert_eq(hstep_dataset_evaluation_windows(dataset, 1, 0), 204, "every token but the first is predicted");
    cr_assert_eq(hstep_dataset_check(dataset, 1, &error), HSTEP_ERROR_INPUT_FILE, "there is nothing to train on");
    cr_assert_eq(hstep_dataset_split_at(dataset, 205, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_evaluation_windows(dataset, 4, 0), 0);
    hstep_dataset_destroy(dataset);
}

Test(data, has_the_published_checksum) {
    /* XXH3_64bits of the one byte, as xxHash's own tools print it. */
    hstep_dataset *a = from_bytes("a", 1), *again = from_bytes("a", 1), *b = from_bytes("b", 1);
    cr_assert_eq(hstep_dataset_checksum(a), UINT64_C(0xe6c632b61e964e1f));
    cr_assert_eq(hstep_dataset_checksum(again), hstep_dataset_checksum(a));
    cr_assert_neq(hstep_dataset_checksum(b), hstep_dataset_checksum(a));
    hstep_dataset_destroy(a);
    hstep_dataset_destroy(again);
    hstep_dataset_destroy(b);
}

Test(data, batch_is_a_window_of_the_training_part_with_next_tokens_as_targets) {
    enum { SEQUENCES = 64, LENGTH = 9 };
    hstep_dataset *dataset = counting(200); /* trains on 0..179: 19 windows and 8 tokens beside them */
    int32_t tokens[SEQUENCES * LENGTH], targets[SEQUENCES * LENGTH];
    int smallest = 999, largest = 0;
    for (uint64_t batch = 0; batch < 40; ++batch) {
        cr_assert_eq(hstep_dataset_batch(dataset, 5, batch * SEQUENCES, SEQUENCES, LENGTH, tokens, targets, &error),
                     HSTEP_OK);
        for (size_t i = 0; i < SEQUENCES * LENGTH; ++i) {
            cr_assert_eq(targets[i], tokens[i] + 1);
            if (i % LENGTH != 0)
                cr_assert_eq(tokens[i], tokens[i - 1] + 1);
            smallest = tokens[i] < smallest ? tokens[i] : smallest;
            largest = targets[i] > largest ? targets[i] : largest;
        }
    }
    /* In 134 epochs the first token and the last are among them, and none reaches the tail. */
    cr_assert_eq(smallest, 0 + HSTEP_TOKEN_FIRST_BYTE);
    cr_assert_eq(largest, 179 + HSTEP_TOKEN_FIRST_BYTE);
    hstep_dataset_destroy(dataset);
}

Test(data, refuses_texts_that_are_too_short) {
    hstep_dataset *dataset = counting(20); /* 18 and 2 */
    int32_t room[40];
    cr_assert_eq(hstep_dataset_check(dataset, 17, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_batch(dataset, 1, 0, 1, 17, room, room + 20, &error), HSTEP_OK);
    cr_assert_eq(room[0], HSTEP_TOKEN_FIRST_BYTE, "there is one window only");
    cr_assert_eq(hstep_dataset_check(dataset, 18, &error), HSTEP_ERROR_INPUT_FILE);
    cr_assert_not_null(strstr(error.message, "18"));
    cr_assert_eq(hstep_dataset_batch(dataset, 1, 0, 1, 18, room, room + 20, &error), HSTEP_ERROR_INPUT_FILE);
    cr_assert_eq(hstep_dataset_check(dataset, 0, &error), HSTEP_ERROR_ARGUMENT);
    hstep_dataset_split_at(dataset, 19, &error);
    cr_assert_eq(hstep_dataset_check(dataset, 4, &error), HSTEP_ERROR_INPUT_FILE, "one held-out token has no target");
    hstep_dataset_destroy(dataset);
    cr_assert_eq(hstep_dataset_from_bytes("", 0, &dataset, &error), HSTEP_ERROR_ARGUMENT);
}

Test(data, evaluation_windows_cover_the_tail_once) {
    enum { LENGTH = 4 };
    for (size_t held = 2; held <= 14; ++held) {
        hstep_dataset *dataset = counting(100 + held);
        hstep_dataset_split_at(dataset, 100, &error);
        const size_t windows = hstep_dataset_evaluation_windows(dataset, LENGTH, 0);
        int32_t tokens[4 * LENGTH], targets[4 * LENGTH];
        cr_assert_eq(hstep_dataset_evaluation_batch(dataset, LENGTH, 0, 0, windows, tokens, targets, &error), HSTEP_OK);
        for (size_t i = 0; i < windows * LENGTH; ++i) {
            if (i + 1 < held) {
                cr_assert_eq(tokens[i], (int32_t)(100 + i) + HSTEP_TOKEN_FIRST_BYTE);
                cr_assert_eq(targets[i], tokens[i] + 1);
            } else {
                cr_assert_eq(targets[i], -1, "held %zu, place %zu", held, i);
            }
        }
        cr_assert_neq(targets[(windows - 1) * LENGTH], -1, "no window is empty");
        cr_assert_eq(hstep_dataset_evaluation_batch(dataset, LENGTH, 0, windows, 1, tokens, targets, &error),
                     HSTEP_ERROR_ARGUMENT);
        hstep_dataset_destroy(dataset);
    }
}

Test(data, limited_evaluation_is_evenly_spaced) {
    hstep_dataset *dataset = counting(240);
    hstep_dataset_split_at(dataset, 40, &error); /* 199 targets: 100 windows of 2 */
    cr_assert_eq(hstep_dataset_evaluation_windows(dataset, 2, 0), 100);
    cr_assert_eq(hstep_dataset_evaluation_windows(dataset, 2, 1000), 100);
    cr_assert_eq(hstep_dataset_evaluation_windows(dataset, 2, 5), 5);
    int32_t tokens[10], targets[10];
    cr_assert_eq(hstep_dataset_evaluation_batch(dataset, 2, 5, 0, 5, tokens, targets, &error), HSTEP_OK);
    for (int k = 0; k < 5; ++k)
        cr_assert_eq(tokens[2 * k], 40 + 40 * k + HSTEP_TOKEN_FIRST_BYTE);
    hstep_dataset_destroy(dataset);
}

Test(data, unigram_loss_is_the_cross_entropy_of_byte_counts) {
    /* Training part aaab: (3+1), (1+1) of 4 + 256; held out: ab. */
    hstep_dataset *dataset = from_bytes("aaabab", 6);
    hstep_dataset_split_at(dataset, 4, &error);
    const double expected = -(log(4.0 / 260) + log(2.0 / 260)) / 2;
    double loss;
    cr_assert_eq(hstep_dataset_unigram_loss(dataset, &loss, &error), HSTEP_OK);
    cr_assert_float_eq(loss, expected, 1e-13);
    hstep_dataset_split_at(dataset, 6, &error);
    const double own = -(4 * log(5.0 / 262) + 2 * log(3.0 / 262)) / 6;
    cr_assert_eq(hstep_dataset_unigram_loss(dataset, &loss, &error), HSTEP_OK);
    cr_assert_float_eq(loss, own, 1e-13);
    hstep_dataset_destroy(dataset);
}

Test(data_files, joins_files_of_any_bytes_in_order, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    FILE *file = fopen("one", "wb");
    const unsigned char bytes[] = {0, 255, 128, 10};
    fwrite(bytes, 1, sizeof bytes, file);
    fclose(file);
    hs_test_write_file("two", "xy");
    const char *const paths[] = {"one", "two"};
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_load(paths, 2, NULL, &dataset, &error), HSTEP_OK, "%s", error.message);
    hstep_dataset_hold_out(dataset, 0, &error);
    hstep_dataset_split_at(dataset, 6, &error);
    int32_t tokens[5], targets[5];
    hstep_dataset_batch(dataset, 1, 0, 1, 5, tokens, targets, &error);
    const int32_t expected[] = {2, 257, 130, 12, 'x' + 2};
    cr_assert_arr_eq(tokens, expected, sizeof expected);
    cr_assert_eq(targets[4], 'y' + 2);
    hstep_dataset_destroy(dataset);
}

Test(data_files, refuses_bad_files_by_name, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_write_file("good", "text");
    hs_test_write_file("empty", "");
    cr_assert_eq(mkdir("folder", 0700), 0);
    const struct {
        const char *path, *reason;
    } bad[] = {
        {"missing", "No such file"}, {"empty", "empty"},
        {"folder", "directory"},     {"good/below", "Not a directory"},
        {"/dev/null", "device"},     {"/proc/self/mem", "nput/output error"}}; /* reading it fails, even for root */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        const char *const paths[] = {"good", bad[i].path};
        hstep_dataset *dataset = NULL;
        cr_assert_eq(hstep_dataset_load(paths, 2, NULL, &dataset, &error), HSTEP_ERROR_INPUT_FILE);
        cr_assert_eq(error.status, HSTEP_ERROR_INPUT_FILE);
        cr_assert_not_null(strstr(error.message, bad[i].path), "%s", error.message);
        cr_assert_not_null(strstr(error.message, bad[i].reason), "%s", error.message);
        cr_assert_null(dataset);
    }
    cr_assert_eq(hstep_dataset_load(NULL, 0, NULL, &(hstep_dataset *){NULL}, &error), HSTEP_ERROR_ARGUMENT);
}

Test(data_files, a_long_path_leaves_room_for_the_reason) {
    char path[3000];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    const char *const paths[] = {path};
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_load(paths, 1, NULL, &dataset, &error), HSTEP_ERROR_INPUT_FILE);
    cr_assert_not_null(strstr(error.message, "File name too long"), "%s", error.message);
}

Test(data, random_numbers_depend_on_all_three) {
    const uint64_t base = hstep_random_at(1, 2, 3);
    cr_assert_eq(hstep_random_at(1, 2, 3), base);
    cr_assert_neq(hstep_random_at(0, 2, 3), base);
    cr_assert_neq(hstep_random_at(1, 3, 2), base);
    cr_assert_neq(hstep_random_at(1, 2, 4), base);
    /* 4096 draws over 16 bins: 256 expected each, standard deviation 15.5. */
    int bins[16] = {0};
    for (uint64_t i = 0; i < 4096; ++i)
        ++bins[hstep_random_at(9, 1, i) >> 60];
    for (int i = 0; i < 16; ++i)
        cr_assert(bins[i] > 180 && bins[i] < 332, "bin %d has %d", i, bins[i]);
}

/* Where a status is returned, NULL is an argument like any other that is wrong. */
Test(data, null_is_refused) {
    static const char text[] = "some text";
    hstep_dataset *dataset = from_bytes(text, 9), *made = NULL;
    const char *const paths[] = {"/dev/zero", NULL};
    int32_t room[4] = {0};
    double loss;
    size_t size = 0;
    hstep_data_file file;
    hstep_data_position position = {.length = 2};
    const hstep_status statuses[] = {
        hstep_dataset_load(NULL, 1, NULL, &made, &error),
        hstep_dataset_load(paths + 1, 1, NULL, &made, &error),
        hstep_dataset_load(paths, 2, NULL, &made, &error), /* before anything is read: the first one has no end */
        hstep_dataset_load(paths, 1, NULL, NULL, &error),
        hstep_dataset_from_bytes(NULL, 9, &made, &error),
        hstep_dataset_from_bytes(text, 9, NULL, &error),
        hstep_dataset_hold_out(NULL, 0.5, &error),
        hstep_dataset_split_at(NULL, 1, &error),
        hstep_dataset_check(NULL, 2, &error),
        hstep_dataset_unigram_loss(NULL, &loss, &error),
        hstep_dataset_unigram_loss(dataset, NULL, &error),
        hstep_dataset_file(NULL, 0, &file, &error),
        hstep_dataset_file(dataset, 0, NULL, &error),
        hstep_dataset_file(dataset, 1, &file, &error),
        hstep_dataset_read(NULL, 0, 1, room, &error),
        hstep_dataset_read(dataset, 0, 1, NULL, &error),
        hstep_dataset_read(dataset, 9, 1, room, &error),
        hstep_dataset_read(dataset, 1, SIZE_MAX, room, &error),
        hstep_dataset_save_position(NULL, &position, NULL, &size, &error),
        hstep_dataset_save_position(dataset, NULL, NULL, &size, &error),
        hstep_dataset_save_position(dataset, &position, NULL, NULL, &error),
        hstep_dataset_restore_position(NULL, text, 9, &position, &error),
        hstep_dataset_restore_position(dataset, NULL, 9, &position, &error),
        hstep_dataset_restore_position(dataset, text, 9, NULL, &error),
        hstep_dataset_batch(NULL, 1, 0, 1, 4, room, room, &error),
        hstep_dataset_batch(dataset, 1, 0, 1, 4, NULL, room, &error),
        hstep_dataset_batch(dataset, 1, 0, 1, 4, room, NULL, &error),
        hstep_dataset_batch(dataset, 1, 0, 1, 4, room, NULL, NULL),
        hstep_dataset_evaluation_batch(NULL, 4, 0, 0, 0, room, room, &error),
        hstep_dataset_evaluation_batch(dataset, 4, 0, 0, 1, NULL, room, &error),
        hstep_dataset_evaluation_batch(dataset, 4, 0, 0, 1, room, NULL, &error),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; ++i)
        cr_expect_eq(statuses[i], HSTEP_ERROR_ARGUMENT, "call %zu: %s", i, hstep_status_name(statuses[i]));
    cr_expect_null(made);
    hstep_dataset_destroy(NULL);
    hstep_dataset_destroy(dataset);
}
