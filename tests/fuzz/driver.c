/*
 * Runs a fuzz target without libFuzzer: NAME [SECONDS [SEED]], or NAME --examples FOLDER for files that libFuzzer can
 * start from. Mutates the target's examples in ways that files go
 * wrong: bits, bytes, numbers at the edge, pieces moved, cut and doubled. The same seed gives the same inputs. An input
 * that ends the program is in the file NAME-input, which NAME FILE runs again.
 */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/target.h"
#include "precision/random.h"

enum { ROOM = 1 << 16, EXAMPLES = 64 };

typedef struct example {
    uint8_t *data;
    size_t size;
} example;

static size_t below(hs_random *random, size_t limit) { return (size_t)(hs_random_next(random) % limit); }

/* Digits of a decimal number become another: lengths, shapes and offsets of headers, values of configurations. */
static void change_number(hs_random *random, uint8_t *data, size_t size) {
    static const char *const numbers[] = {
        "0", "1", "8", "-1", "9223372036854775807", "18446744073709551616", "1e999", "4294967296", "0.5"};
    size_t at = below(random, size);
    while (at < size && (data[at] < '0' || data[at] > '9'))
        at++;
    const char *number = numbers[below(random, sizeof numbers / sizeof numbers[0])];
    for (size_t i = 0; number[i] != '\0' && at + i < size; i++)
        data[at + i] = (uint8_t)number[i];
}

static size_t mutate(hs_random *random, uint8_t *data, size_t size) {
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '"', '{', '}', '[', ']', ',', ':', '\\', ' ', '0', '-'};
    if (size == 0)
        return 0;
    const size_t at = below(random, size), from = below(random, size);
    const size_t length = 1 + below(random, size - (at > from ? at : from));
    switch (below(random, 8)) {
    case 0:
        data[at] ^= (uint8_t)(1u << below(random, 8));
        return size;
    case 1:
        data[at] = edges[below(random, sizeof edges)];
        return size;
    case 2:
        change_number(random, data, size);
        return size;
    case 3:
        memmove(data + at, data + from, length);
        return size;
    case 4: /* take a piece out */
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 5: /* double a piece */
        if (size + length > ROOM)
            return size;
        memmove(data + at + length, data + at, size - at);
        return size + length;
    case 6:
        for (size_t i = 0; i < 8 && at + i < size; i++)
            data[at + i] = (uint8_t)hs_random_next(random);
        return size;
    default:
        return at;
    }
}

static size_t read_examples(example *examples) {
    static uint8_t data[ROOM];
    size_t count = 0, size;
    while (count < EXAMPLES && (size = hs_fuzz_example(count, data, ROOM)) > 0) {
        examples[count] = (example){malloc(size), size};
        memcpy(examples[count++].data, data, size);
    }
    return count;
}

/* A copy of exactly the input's size, so that a byte read beyond it is seen. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int run_file(const char *path) {
    static uint8_t data[ROOM];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return EXIT_FAILURE;
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    run(data, size);
    return EXIT_SUCCESS;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The input under test lies in a file that outlives a crash. */
static uint8_t *map_input(const char *path) {
    const int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || ftruncate(file, ROOM) != 0)
        return NULL;
    uint8_t *map = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return map != MAP_FAILED ? map : NULL;
}

static uint64_t fuzz(const char *path, double limit, uint64_t seed) {
    example examples[EXAMPLES];
    hs_random random = {.state = seed};
    const size_t count = read_examples(examples);
    const double end = seconds() + limit;
    uint8_t *input = map_input(path);
    uint64_t runs = 0;
    if (input == NULL || count == 0) {
        fprintf(stderr, "no input file %s, or no examples\n", path);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < count; i++)
        run(examples[i].data, examples[i].size);
    while (seconds() < end) {
        const example *start = &examples[below(&random, count)];
        size_t size = start->size;
        memcpy(input, start->data, size);
        for (size_t changes = 1 + below(&random, 4); changes > 0; changes--)
            size = mutate(&random, input, size);
        /* The file has the size of the input while that is run, and room for the next one afterwards. */
        if (truncate(path, (off_t)size) != 0)
            break;
        run(input, size);
        if (truncate(path, ROOM) != 0)
            break;
        runs++;
    }
    (void)munmap(input, ROOM);
    (void)unlink(path);
    for (size_t i = 0; i < count; i++)
        free(examples[i].data);
    return runs;
}

static int write_examples(const char *folder) {
    example examples[EXAMPLES];
    const size_t count = read_examples(examples);
    bool written = count > 0;
    for (size_t i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/example-%zu", folder, i);
        FILE *file = fopen(path, "wb");
        written = written && file != NULL && fwrite(examples[i].data, 1, examples[i].size, file) == examples[i].size;
        written = file != NULL && fclose(file) == 0 && written;
        free(examples[i].data);
    }
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    const char *name = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    char *rest = NULL, path[256];
    if (argc == 3 && strcmp(argv[1], "--examples") == 0)
        return write_examples(argv[2]);
    const double limit = argc > 1 ? strtod(argv[1], &rest) : 10;
    if (rest != NULL && *rest != '\0')
        return run_file(argv[1]);
    snprintf(path, sizeof path, "%s-input", name);
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("%s: %llu inputs in %g s\n", name, (unsigned long long)fuzz(path, limit, seed), limit);
    return EXIT_SUCCESS;
}
