/* Contexts share nothing: several at once, in threads of any making, give the bits of one alone. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "support/models.h"

#ifndef _OPENMP
#error "this test needs OpenMP, or its regions are no regions"
#endif

enum { RUNS = 3 };

/* Weights after a few updates of a decoder large enough for several threads in its products. Update i is made by one of
 * the threads alone where bit i of `alone` is set. */
static uint64_t train_in_part_alone(unsigned threads, unsigned alone) {
    const hs_test_setup setup = {.backend = HSTEP_BACKEND_CPU,
                                 .threads = threads,
                                 .precision = HSTEP_PRECISION_BF16,
                                 .vocabulary = 50,
                                 .width = 64,
                                 .heads = 4,
                                 .feed_forward = 96,
                                 .layers = 1};
    hs_test_run run = hs_test_run_create(&setup);
    hs_test_batch batch = hs_test_batch_create(4, 32, 50, true, 3);
    hstep_error error = {0};
    for (int i = 0; i < 3; i++) {
        hstep_update update;
        hstep_context_use_one_thread(run.context, (alone >> i & 1) != 0);
        hs_test_expect_ok(hstep_trainer_update(run.trainer, &batch.batch, 1, &update, &error), &error);
        cr_expect_eq(update.threads, (alone >> i & 1) != 0 ? 1 : threads);
    }
    uint64_t checksum = 0;
    hs_test_expect_ok(hstep_model_checksum(run.model, &checksum, &error), &error);
    hs_test_batch_destroy(&batch);
    hs_test_run_destroy(&run);
    return checksum;
}

static uint64_t train(unsigned threads) { return train_in_part_alone(threads, 0); }

static void *train_in_thread(void *checksum) {
    *(uint64_t *)checksum = train(2);
    return NULL;
}

Test(contexts, in_threads_of_the_system) {
    const uint64_t alone = train(1);
    pthread_t threads[RUNS];
    uint64_t checksums[RUNS] = {0};
    for (size_t i = 0; i < RUNS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, train_in_thread, &checksums[i]), 0);
    for (size_t i = 0; i < RUNS; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_expect_eq(checksums[i], alone);
    }
}

Test(contexts, in_a_parallel_region, .timeout = 120) {
    const uint64_t alone = train(1);
    for (unsigned threads = 1; threads <= 2; threads++) {
        uint64_t checksums[RUNS] = {0};
#pragma omp parallel for num_threads(RUNS) schedule(static, 1)
        for (size_t i = 0; i < RUNS; i++)
            checksums[i] = train(threads);
        for (size_t i = 0; i < RUNS; i++)
            cr_expect_eq(checksums[i], alone, "run %zu with %u threads", i, threads);
    }
}

Test(contexts, by_one_thread_of_a_region, .timeout = 120) {
    const uint64_t alone = train(1);
    uint64_t checksum = 0;
#pragma omp parallel num_threads(RUNS)
#pragma omp single
    checksum = train(2);
    cr_expect_eq(checksum, alone);
}

/* A context whose programs were made for several threads computes on one, and the other way round. */
Test(contexts, one_thread_now_and_then) {
    const uint64_t expected = train(1);
    for (unsigned alone = 0; alone < 8; alone++)
        cr_expect_eq(train_in_part_alone(3, alone), expected, "alone %u", alone);
}
