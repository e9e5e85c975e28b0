/* Epochs: every window once, in an order of its own, as a function of seed and position. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <halfstep/halfstep.h>

#include "engine/data/shuffle.h"

static hstep_error error;

Test(shuffle, is_a_permutation_for_awkward_counts) {
    static const uint64_t counts[] = {1,  2,  3,  4,  5,   6,   7,   8,   9,   13,   16,   17,   31,  32,
                                      33, 61, 64, 97, 100, 127, 128, 129, 509, 1000, 1024, 1025, 4093};
    unsigned char *seen = malloc(5000);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; ++c) {
        for (uint64_t epoch = 0; epoch < 20; ++epoch) {
            const hs_shuffle shuffle = hs_shuffle_make(c, epoch, counts[c]);
            memset(seen, 0, 5000);
            for (uint64_t i = 0; i < counts[c]; ++i) {
                const uint64_t window = hs_shuffle_at(&shuffle, i);
                cr_assert_lt(window, counts[c]);
                cr_assert_eq(seen[window]++, 0, "count %zu, epoch %zu", (size_t)counts[c], (size_t)epoch);
            }
        }
    }
    free(seen);
}

/* Counts that no list could hold: no two of many places give one window. */
static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

Test(shuffle, holds_for_counts_beyond_memory) {
    enum { PLACES = 20000 };
    static const uint64_t counts[] = {(UINT64_C(1) << 40) + 1, UINT64_MAX, (UINT64_C(1) << 63) + 1};
    uint64_t *windows = malloc(PLACES * sizeof *windows);
    for (size_t c = 0; c < 3; ++c) {
        const hs_shuffle shuffle = hs_shuffle_make(1, 0, counts[c]);
        for (uint64_t i = 0; i < PLACES; ++i) {
            windows[i] = hs_shuffle_at(&shuffle, i % 2 == 0 ? i : counts[c] - 1 - i);
            cr_assert_lt(windows[i], counts[c]);
        }
        qsort(windows, PLACES, sizeof *windows, by_value);
        for (size_t i = 1; i < PLACES; ++i)
            cr_assert_neq(windows[i], windows[i - 1]);
    }
    free(windows);
}

/* 1000 epochs of 10 windows: at each place each window is expected 100 times, with a deviation of 9.5. */
Test(shuffle, every_window_is_as_likely_at_every_place) {
    int counts[10][10] = {{0}};
    for (uint64_t epoch = 0; epoch < 1000; ++epoch) {
        const hs_shuffle shuffle = hs_shuffle_make(7, epoch, 10);
        for (uint64_t i = 0; i < 10; ++i)
            ++counts[i][hs_shuffle_at(&shuffle, i)];
    }
    for (int i = 0; i < 10; ++i)
        for (int j = 0; j < 10; ++j)
            cr_expect(counts[i][j] > 55 && counts[i][j] < 145, "window %d at place %d: %d times", j, i, counts[i][j]);
}

/* All orders of three windows are about as frequent: 200 of 1200 each, with a deviation of 13. */
Test(shuffle, every_order_of_three_comes) {
    int counts[27] = {0}, orders = 0;
    for (uint64_t epoch = 0; epoch < 1200; ++epoch) {
        const hs_shuffle shuffle = hs_shuffle_make(11, epoch, 3);
        ++counts[9 * hs_shuffle_at(&shuffle, 0) + 3 * hs_shuffle_at(&shuffle, 1) + hs_shuffle_at(&shuffle, 2)];
    }
    for (int i = 0; i < 27; ++i) {
        orders += counts[i] > 0;
        cr_expect(counts[i] == 0 || (counts[i] > 135 && counts[i] < 265), "order %d: %d times", i, counts[i]);
    }
    cr_expect_eq(orders, 6);
}

/* Neighbours in the data are no neighbours in an epoch: of 999 steps about one goes to the next window. */
Test(shuffle, breaks_the_order_of_the_data) {
    const hs_shuffle shuffle = hs_shuffle_make(1, 0, 1000);
    int next = 0;
    for (uint64_t i = 1; i < 1000; ++i)
        next += hs_shuffle_at(&shuffle, i) == hs_shuffle_at(&shuffle, i - 1) + 1;
    cr_expect_lt(next, 10);
}

enum { LENGTH = 4 };

/* Byte i has the value i (mod 256); nothing is held out. */
static hstep_dataset *counting(size_t size) {
    unsigned char *bytes = malloc(size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (unsigned char)i;
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_from_bytes(bytes, size, &dataset, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_hold_out(dataset, 0, &error), HSTEP_OK);
    free(bytes);
    return dataset;
}

Test(epochs, every_window_once_and_end_to_end) {
    static const size_t windows[] = {1, 2, 3, 5, 8, 13, 64, 101, 128};
    static int32_t tokens[128 * LENGTH], targets[128 * LENGTH];
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; ++w) {
        for (size_t surplus = 0; surplus < LENGTH; ++surplus) {
            const size_t size = windows[w] * LENGTH + 1 + surplus;
            unsigned char *bytes = malloc(size);
            for (size_t i = 0; i < size; ++i)
                bytes[i] = (unsigned char)(i / LENGTH); /* shows the window but for the phase */
            hstep_dataset *dataset = NULL;
            cr_assert_eq(hstep_dataset_from_bytes(bytes, size, &dataset, &error), HSTEP_OK);
            cr_assert_eq(hstep_dataset_hold_out(dataset, 0, &error), HSTEP_OK);
            cr_assert_eq(hstep_dataset_training_windows(dataset, LENGTH), windows[w]);
            for (uint64_t epoch = 0; epoch < 10; ++epoch) {
                cr_assert_eq(
                    hstep_dataset_batch(dataset, 3, epoch * windows[w], windows[w], LENGTH, tokens, targets, &error),
                    HSTEP_OK);
                unsigned char seen[256] = {0};
                for (size_t i = 0; i < windows[w]; ++i) {
                    const int32_t first = tokens[i * LENGTH] - HSTEP_TOKEN_FIRST_BYTE;
                    cr_assert_lt((size_t)first, windows[w]);
                    cr_assert_eq(seen[first]++, 0, "%zu windows, surplus %zu", windows[w], surplus);
                }
            }
            free(bytes);
            hstep_dataset_destroy(dataset);
        }
    }
}

/* What is left over is left out at both ends, in turn: every token is learnt in some epoch. */
Test(epochs, every_token_is_learnt_sooner_or_later) {
    enum { SIZE = 3 * LENGTH + 1 + 3 };
    hstep_dataset *dataset = counting(SIZE);
    int learnt[SIZE] = {0};
    int32_t tokens[3 * LENGTH], targets[3 * LENGTH];
    for (uint64_t epoch = 0; epoch < 40; ++epoch) {
        hstep_dataset_batch(dataset, 3, epoch * 3, 3, LENGTH, tokens, targets, &error);
        for (size_t i = 0; i < 3 * LENGTH; ++i)
            ++learnt[targets[i] - HSTEP_TOKEN_FIRST_BYTE];
    }
    for (size_t i = 1; i < SIZE; ++i)
        cr_expect(learnt[i] > 0 && learnt[i] <= 40, "token %zu: %d times", i, learnt[i]);
    hstep_dataset_destroy(dataset);
}

Test(epochs, batch_is_a_function_of_seed_and_position) {
    enum { ROWS = 30 };
    hstep_dataset *dataset = counting(7 * LENGTH + 2); /* 7 windows: a batch goes over several epochs */
    int32_t whole[ROWS * LENGTH], targets[ROWS * LENGTH], row[LENGTH], target[LENGTH], other[ROWS * LENGTH];
    cr_assert_eq(hstep_dataset_batch(dataset, 1, 2, ROWS, LENGTH, whole, targets, &error), HSTEP_OK);
    for (uint64_t i = 0; i < ROWS; ++i) {
        cr_assert_eq(hstep_dataset_batch(dataset, 1, 2 + i, 1, LENGTH, row, target, &error), HSTEP_OK);
        cr_expect_arr_eq(row, whole + i * LENGTH, sizeof row, "row %zu", (size_t)i);
        cr_expect_arr_eq(target, targets + i * LENGTH, sizeof target);
    }
    hstep_dataset_batch(dataset, 2, 2, ROWS, LENGTH, other, targets, &error);
    cr_expect_arr_neq(whole, other, sizeof whole, "the seed matters");
    cr_expect_arr_neq(whole, whole + 7 * LENGTH, 7 * sizeof row, "epochs differ");
    cr_expect_eq(hstep_dataset_batch(dataset, 2, UINT64_MAX, 2, LENGTH, other, targets, &error), HSTEP_ERROR_ARGUMENT);
    hstep_dataset_destroy(dataset);
}

Test(epochs, one_window_may_take_all) {
    hstep_dataset *dataset = counting(200);
    int32_t tokens[200], targets[200];
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
        cr_assert_eq(hstep_dataset_batch(dataset, 1, epoch, 1, 199, tokens, targets, &error), HSTEP_OK);
        cr_expect_eq(tokens[0], HSTEP_TOKEN_FIRST_BYTE);
        cr_expect_eq(targets[198], 199 + HSTEP_TOKEN_FIRST_BYTE);
    }
    cr_expect_eq(hstep_dataset_batch(dataset, 1, 0, 1, 200, tokens, targets, &error), HSTEP_ERROR_INPUT_FILE);
    hstep_dataset_destroy(dataset);
}
