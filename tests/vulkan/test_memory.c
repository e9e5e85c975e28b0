/* Buffers on the device: zero-filled, apart from each other, written, read and cleared in the order of the calls. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "precision/random.h"
#include "support/device.h"

static unsigned char *pattern(size_t bytes, uint64_t seed) {
    unsigned char *data = malloc(bytes + 1);
    cr_assert_not_null(data);
    hs_random random = {seed};
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)hs_random_next(&random);
    return data;
}

static void expect(hs_backend *backend, const hs_buffer *buffer, size_t offset, const unsigned char *expected,
                   size_t bytes) {
    unsigned char *found = malloc(bytes + 1);
    cr_assert_not_null(found);
    cr_assert_eq(backend->api->read(backend, buffer, offset, found, bytes, NULL), HSTEP_OK);
    cr_assert_eq(memcmp(found, expected, bytes), 0, "%zu bytes at %zu", bytes, offset);
    free(found);
}

static hs_buffer *make(hs_backend *backend, size_t bytes) {
    hs_buffer *buffer = NULL;
    cr_assert_eq(backend->api->buffer_create(backend, bytes, &buffer, NULL), HSTEP_OK);
    return buffer;
}

Test(memory, is_zero_when_it_is_new_and_when_it_is_used_again) {
    hs_backend *backend = hs_test_device();
    unsigned char *zeros = calloc(5000, 1), *noise = pattern(5000, 1);
    for (int i = 0; i < 3; i++) {
        hs_buffer *buffer = make(backend, 5000);
        expect(backend, buffer, 0, zeros, 5000);
        cr_assert_eq(backend->api->write(backend, buffer, 0, noise, 5000, NULL), HSTEP_OK);
        expect(backend, buffer, 0, noise, 5000);
        backend->api->buffer_destroy(backend, buffer);
    }
    free(zeros);
    free(noise);
    backend->api->destroy(backend);
}

/* Many sizes, some given back in between: no buffer may lie in another. */
Test(memory, keeps_buffers_apart) {
    enum { BUFFERS = 60 };
    hs_backend *backend = hs_test_device();
    hs_buffer *buffers[BUFFERS] = {NULL};
    unsigned char *data[BUFFERS] = {NULL};
    size_t sizes[BUFFERS] = {0};
    hs_random random = {3};
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < BUFFERS; i++) {
            if (buffers[i] && hs_random_next(&random) % 2)
                continue;
            backend->api->buffer_destroy(backend, buffers[i]);
            free(data[i]);
            sizes[i] = hs_random_next(&random) % 3000;
            buffers[i] = make(backend, sizes[i]);
            data[i] = pattern(sizes[i], i);
            cr_assert_eq(backend->api->write(backend, buffers[i], 0, data[i], sizes[i], NULL), HSTEP_OK);
        }
        size_t held = 0;
        for (size_t i = 0; i < BUFFERS; i++) {
            expect(backend, buffers[i], 0, data[i], sizes[i]);
            held += sizes[i];
        }
        cr_assert_eq(backend->api->held(backend), held);
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        backend->api->buffer_destroy(backend, buffers[i]);
        free(data[i]);
    }
    cr_assert_eq(backend->api->held(backend), 0);
    backend->api->destroy(backend);
}

/* More than all places in between hold, so that copies have to wait for each other. */
Test(memory, moves_more_than_the_staging_holds) {
    const size_t bytes = ((size_t)9 << 20) + 13;
    hs_backend *backend = hs_test_device();
    hs_buffer *buffer = make(backend, bytes + 7);
    unsigned char *data = pattern(bytes, 5);
    cr_assert_eq(backend->api->write(backend, buffer, 7, data, bytes, NULL), HSTEP_OK);
    expect(backend, buffer, 7, data, bytes);
    free(data);
    backend->api->buffer_destroy(backend, buffer);
    backend->api->destroy(backend);
}

Test(memory, clears_exactly_what_was_asked_for) {
    enum { BYTES = 64 };
    hs_backend *backend = hs_test_device();
    hs_buffer *buffer = make(backend, BYTES);
    for (size_t offset = 0; offset < 9; offset++)
        for (size_t bytes = 0; bytes < 21; bytes++) {
            unsigned char *data = pattern(BYTES, offset * 32 + bytes);
            cr_assert_eq(backend->api->write(backend, buffer, 0, data, BYTES, NULL), HSTEP_OK);
            cr_assert_eq(backend->api->clear(backend, buffer, offset, bytes, NULL), HSTEP_OK);
            memset(data + offset, 0, bytes);
            expect(backend, buffer, 0, data, BYTES);
            free(data);
        }
    backend->api->buffer_destroy(backend, buffer);
    backend->api->destroy(backend);
}

Test(memory, refuses_what_lies_outside) {
    hs_backend *backend = hs_test_device();
    hs_buffer *buffer = make(backend, 16);
    char bytes[32] = {0};
    hstep_error error = {0};
    cr_assert_eq(backend->api->write(backend, buffer, 1, bytes, 16, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(backend->api->read(backend, buffer, 17, bytes, 0, &error), HSTEP_ERROR_ARGUMENT);
    cr_assert_eq(backend->api->clear(backend, buffer, 8, SIZE_MAX, &error), HSTEP_ERROR_ARGUMENT);
    backend->api->buffer_destroy(backend, buffer);
    backend->api->destroy(backend);
}

Test(memory, that_no_device_has_is_an_error_of_memory) {
    hs_backend *backend = hs_test_device();
    hs_buffer *buffer = NULL;
    hstep_error error = {0};
    cr_assert_eq(backend->api->buffer_create(backend, (size_t)1 << 50, &buffer, &error), HSTEP_ERROR_MEMORY);
    cr_assert_eq(backend->api->buffer_create(backend, SIZE_MAX, &buffer, &error), HSTEP_ERROR_MEMORY);
    cr_assert_eq(backend->api->held(backend), 0);
    backend->api->destroy(backend);
}
