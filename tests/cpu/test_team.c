/* A backend is refused where its threads cannot be had or compute in another mode. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "cpu/cpu.h"
#include "support/calls.h"

Test(team, threads_without_end_are_refused) {
    hs_backend *backend = NULL;
    hstep_error error = {0};
    cr_expect_eq(hs_cpu_create(1025, &backend, &error), HSTEP_ERROR_ARGUMENT);
    cr_expect_null(backend);
}

/* Sanitizers reserve more address space than the limit of this test leaves. */
#if !defined(__SANITIZE_ADDRESS__)
Test(team, threads_that_cannot_start_are_an_error_and_not_the_end) {
    hs_backend *backend = NULL;
    hstep_error error = {0};
    struct rlimit limit = {.rlim_cur = (rlim_t)512 << 20, .rlim_max = (rlim_t)512 << 20};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_expect_eq(hs_cpu_create(1000, &backend, &error), HSTEP_ERROR_MEMORY);
    cr_expect(strstr(error.message, "threads") != NULL, "%s", error.message);
    cr_expect_null(backend);
}
#endif

#if defined(__x86_64__)
/*
 * FTZ in the caller, then FTZ that stayed behind in the worker, which began with the caller's mode. GNU's OpenMP leaves
 * a worker's mode alone. LLVM's hands the caller's on at every region: there nothing stays behind, and the backend is
 * had.
 */
Test(team, threads_that_flush_are_refused) {
    const unsigned usual = _mm_getcsr();
    hs_backend *backend = NULL;
    hstep_error error = {0};
    _mm_setcsr(usual | 0x8040);
    cr_expect_eq(hs_cpu_create(2, &backend, &error), HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_expect_null(backend);
    _mm_setcsr(usual);
    const hstep_status status = hs_cpu_create(2, &backend, &error);
#if defined(__clang__)
    cr_assert_eq(status, HSTEP_OK);
    backend->api->destroy(backend);
#else
    cr_expect_eq(status, HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_expect(strstr(error.message, "1 of 2") != NULL, "%s", error.message);
    cr_expect_null(backend);
#endif
}

Test(team, a_caller_that_flushes_later_is_refused) {
    const unsigned usual = _mm_getcsr();
    hs_backend *backend = NULL;
    hs_program *program = NULL;
    hstep_error error = {0};
    cr_assert_eq(hs_cpu_create(1, &backend, &error), HSTEP_OK);
    cr_assert_eq(backend->api->program_create(backend, NULL, 0, &program, &error), HSTEP_OK);
    _mm_setcsr(usual | 0x8000);
    const hstep_status status = backend->api->program_run(backend, program, 0, 0, &error);
    _mm_setcsr(usual);
    cr_expect_eq(status, HSTEP_ERROR_BACKEND_UNAVAILABLE);
    cr_expect_eq(backend->api->program_run(backend, program, 0, 0, &error), HSTEP_OK);
    backend->api->program_destroy(backend, program);
    backend->api->destroy(backend);
}
#endif
