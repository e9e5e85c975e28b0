/*
 * Whole updates of a decoder on made-up tokens, timed: a line of JSON for each. With --serve an update waits for a line
 * on standard input, so that tools/bench/step.py can alternate it with another program's. Weights and tokens come from
 * integers by a formula that step_pytorch.py has too: both sides then report the same losses.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <halfstep/halfstep.h>

#include "scatter.h"

typedef struct settings {
    size_t vocabulary, width, layers, heads, feed_forward, batch_size, context;
    size_t threads, repeats, warm_up, head_rows;
    hstep_precision precision;
    hstep_backend backend;
    const char *levers, *device; /* NULL: the device that promises most */
    bool phases, serve;
} settings;

typedef struct named_size {
    const char *name;
    size_t width, layers, heads, feed_forward, vocabulary, batch_size, context;
} named_size;

static const named_size sizes[] = {{"small", 128, 4, 4, 384, 258, 12, 64},
                                   {"medium", 384, 6, 6, 1024, 258, 4, 256},
                                   {"124m", 768, 12, 12, 2048, 50257, 4, 64}};

static const char *const backends[] = {[HSTEP_BACKEND_AUTO] = "auto",
                                       [HSTEP_BACKEND_CPU] = "cpu",
                                       [HSTEP_BACKEND_CPU_REFERENCE] = "cpu-reference",
                                       [HSTEP_BACKEND_VULKAN] = "vulkan"};

/* What one update took; the phases are 0 unless they were asked for. */
typedef struct timing {
    double seconds, cpu_seconds, forward, backward, commit;
} timing;

typedef struct bench {
    settings s;
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
    int32_t *tokens, *targets;
    hstep_error error;
} bench;

static void fail(const bench *b) {
    fprintf(stderr, "step: %s: %s\n", hstep_status_name(b->error.status), b->error.message);
    exit(1);
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "step: out of memory\n");
        exit(1);
    }
    return memory;
}

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Uniform with deviation 0.02, residual projections divided by sqrt(2 layers); gains 1. */
static void write_weights(bench *b) {
    for (size_t p = 0; p < hstep_model_parameter_count(b->model); p++) {
        hstep_parameter parameter;
        if (hstep_model_parameter(b->model, p, &parameter, &b->error) != HSTEP_OK)
            fail(b);
        const bool residual = ends_with(parameter.name, "attention.output.weight") ||
                              ends_with(parameter.name, "feed_forward.down.weight");
        const double range = 0.02 * sqrt(12.0) / (residual ? sqrt(2.0 * (double)b->s.layers) : 1.0);
        double *values = allocate(parameter.elements, sizeof *values);
        for (size_t i = 0; i < parameter.elements; i++)
            values[i] =
                parameter.rank == 1 ? 1.0 : ((double)hs_scatter((uint32_t)i, (uint32_t)p + 1) * 0x1p-32 - 0.5) * range;
        if (hstep_model_write_parameter(b->model, p, values, &b->error) != HSTEP_OK)
            fail(b);
        free(values);
    }
}

static void prepare(bench *b) {
    const settings *s = &b->s;
    hstep_context_options options = hstep_context_defaults();
    options.backend = s->backend;
    options.threads = (unsigned)s->threads;
    options.levers = s->levers;
    options.device = s->device;
    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = s->vocabulary;
    decoder.width = s->width;
    decoder.layers = s->layers;
    decoder.heads = s->heads;
    decoder.feed_forward = s->feed_forward;
    decoder.precision = s->precision;
    if (hstep_context_create(&options, &b->context, &b->error) != HSTEP_OK ||
        hstep_model_create_decoder(b->context, &decoder, &b->model, &b->error) != HSTEP_OK)
        fail(b);
    write_weights(b);
    hstep_trainer_config config = hstep_trainer_defaults(s->precision);
    config.head_rows = s->head_rows;
    if (hstep_trainer_create(b->model, &config, &b->trainer, &b->error) != HSTEP_OK)
        fail(b);
    b->tokens = allocate(s->batch_size * s->context, sizeof *b->tokens);
    b->targets = allocate(s->batch_size * s->context, sizeof *b->targets);
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every update has sequences of its own: context + 1 tokens, of which the last `context` are the targets. */
static hstep_batch fill_batch(bench *b, size_t update) {
    const settings *s = &b->s;
    for (size_t sequence = 0; sequence < s->batch_size; sequence++)
        for (size_t i = 0; i <= s->context; i++) {
            const size_t index = (update * s->batch_size + sequence) * (s->context + 1) + i;
            const int32_t token = (int32_t)(hs_scatter((uint32_t)index, 0) % s->vocabulary);
            if (i < s->context)
                b->tokens[sequence * s->context + i] = token;
            if (i > 0)
                b->targets[sequence * s->context + i - 1] = token;
        }
    return (hstep_batch){.sequences = s->batch_size, .length = s->context, .tokens = b->tokens, .targets = b->targets};
}

/* Runs the three parts of an update one at a time. */
static hstep_status update_in_phases(bench *b, const hstep_batch *batch, hstep_update *update, timing *t) {
    const double start = now(CLOCK_MONOTONIC);
    hstep_status status = hstep_trainer_record(b->trainer, batch, &update->loss, &b->error);
    const double recorded = now(CLOCK_MONOTONIC);
    if (status == HSTEP_OK)
        status = hstep_trainer_backward(b->trainer, &b->error);
    const double derived = now(CLOCK_MONOTONIC);
    if (status == HSTEP_OK)
        status = hstep_trainer_commit(b->trainer, update, &b->error);
    t->forward = recorded - start;
    t->backward = derived - recorded;
    t->commit = now(CLOCK_MONOTONIC) - derived;
    return status;
}

static json_t *active_levers(const hstep_context *context) {
    const hstep_lever *levers = NULL;
    const size_t count = hstep_context_levers(context, &levers);
    json_t *names = json_array();
    for (size_t i = 0; i < count; i++)
        if (levers[i].state == HSTEP_LEVER_ACTIVE)
            json_array_append_new(names, json_string(levers[i].name));
    return names;
}

static void print_line(const bench *b, size_t number, const hstep_update *update, const timing *t) {
    const settings *s = &b->s;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    json_t *line = json_pack(
        "{s:s, s:b, s:I, s:s, s:I, s:s, s:s, s:o, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:I}", "side", "halfstep",
        "warm_up", number < s->warm_up, "update", (json_int_t)number, "precision", hstep_precision_name(s->precision),
        "threads", (json_int_t)hstep_context_threads(b->context), "backend", hstep_context_backend_name(b->context),
        "device", hstep_context_device_name(b->context), "levers", active_levers(b->context), "parameters",
        (json_int_t)hstep_model_scalar_count(b->model), "tokens", (json_int_t)(s->batch_size * s->context), "outcome",
        update->outcome == HSTEP_APPLIED ? "applied" : "skipped", "loss", update->loss, "seconds", t->seconds,
        "cpu_seconds", t->cpu_seconds, "tokens_per_second", (double)(s->batch_size * s->context) / t->seconds,
        "peak_rss_bytes", (json_int_t)usage.ru_maxrss * 1024);
    if (line != NULL && s->phases)
        json_object_set_new(
            line, "phases",
            json_pack("{s:f, s:f, s:f}", "forward", t->forward, "backward", t->backward, "commit", t->commit));
    if (line == NULL || json_dumpf(line, stdout, JSON_COMPACT) != 0 || puts("") == EOF || fflush(stdout) != 0) {
        fprintf(stderr, "step: could not write\n");
        exit(1);
    }
    json_decref(line);
}

static void run_update(bench *b, size_t number) {
    const hstep_batch batch = fill_batch(b, number);
    hstep_update update = {0};
    timing t = {0};
    const double start = now(CLOCK_MONOTONIC), cpu_start = now(CLOCK_PROCESS_CPUTIME_ID);
    const hstep_status status = b->s.phases ? update_in_phases(b, &batch, &update, &t)
                                            : hstep_trainer_update(b->trainer, &batch, 1, &update, &b->error);
    t.seconds = now(CLOCK_MONOTONIC) - start;
    t.cpu_seconds = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    if (status != HSTEP_OK)
        fail(b);
    print_line(b, number, &update, &t);
}

/* Whether a line came before the end of the input. */
static bool wait_for_line(void) {
    int c;
    while ((c = getchar()) != EOF)
        if (c == '\n')
            return true;
    return false;
}

static _Noreturn void usage(void) {
    fprintf(stderr, "usage: bench_step [--size small|medium|124m] [--precision fp16|bf16|f64] [--backend auto|cpu|"
                    "cpu-reference|vulkan]\n"
                    "                  [--device D] [--threads N] [--repeats N | --serve] [--warm-up N] [--phases] "
                    "[--levers LIST]\n"
                    "                  [--width N] [--layers N] [--heads N] [--feed-forward N] [--vocabulary N]\n"
                    "                  [--batch-size N] [--context N] [--head-rows N]\n");
    exit(2);
}

static bool read_number(const char *text, size_t *number) {
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    *number = value;
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && value <= INT_MAX;
}

static bool read_size(const char *name, settings *s) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (strcmp(name, sizes[i].name) == 0) {
            const named_size *z = &sizes[i];
            s->vocabulary = z->vocabulary;
            s->width = z->width;
            s->layers = z->layers;
            s->heads = z->heads;
            s->feed_forward = z->feed_forward;
            s->batch_size = z->batch_size;
            s->context = z->context;
            return true;
        }
    return false;
}

static bool read_backend(const char *name, hstep_backend *backend) {
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(name, backends[i]) == 0) {
            *backend = (hstep_backend)i;
            return true;
        }
    return false;
}

static bool read_value(const char *name, const char *value, settings *s) {
    const struct {
        const char *name;
        size_t *number;
    } numbers[] = {{"--threads", &s->threads},
                   {"--repeats", &s->repeats},
                   {"--warm-up", &s->warm_up},
                   {"--width", &s->width},
                   {"--layers", &s->layers},
                   {"--heads", &s->heads},
                   {"--feed-forward", &s->feed_forward},
                   {"--vocabulary", &s->vocabulary},
                   {"--batch-size", &s->batch_size},
                   {"--context", &s->context},
                   {"--head-rows", &s->head_rows}};
    if (strcmp(name, "--size") == 0)
        return read_size(value, s);
    if (strcmp(name, "--precision") == 0)
        return hstep_precision_parse(value, &s->precision) == HSTEP_OK;
    if (strcmp(name, "--backend") == 0)
        return read_backend(value, &s->backend);
    if (strcmp(name, "--levers") == 0 || strcmp(name, "--device") == 0) {
        *(name[2] == 'l' ? &s->levers : &s->device) = value;
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return read_number(value, numbers[i].number);
    return false;
}

static settings read_settings(int argc, char **argv) {
    settings s = {.threads = 1, .repeats = 5, .warm_up = 2, .precision = HSTEP_PRECISION_BF16, .levers = "exact"};
    (void)read_size("small", &s);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--phases") == 0)
            s.phases = true;
        else if (strcmp(argv[i], "--serve") == 0)
            s.serve = true;
        else if (i + 1 < argc && read_value(argv[i], argv[i + 1], &s))
            i++;
        else
            usage();
    }
    if (s.vocabulary == 0 || s.threads == 0)
        usage();
    return s;
}

int main(int argc, char **argv) {
    bench b = {.s = read_settings(argc, argv)};
    prepare(&b);
    for (size_t i = 0; i < b.s.warm_up; i++)
        run_update(&b, i);
    for (size_t i = 0; b.s.serve ? wait_for_line() : i < b.s.repeats; i++)
        run_update(&b, b.s.warm_up + i);
    hstep_trainer_destroy(b.trainer);
    hstep_model_destroy(b.model);
    hstep_context_destroy(b.context);
    free(b.tokens);
    free(b.targets);
    return 0;
}
