/*
 * Exact products beside OpenBLAS sgemm: every kit that this processor can run, fp16 and bf16, over seven shapes of a
 * decoder. Packing and the last rounding count on our side, and casting where the operands are f64 (--slots f64) and
 * not 16 bits; OpenBLAS gets f32 operands. Repeats are interleaved, a figure is the median of the ratios of each
 * repeat. One thread is timed by its processor time, several by the clock on the wall.
 *
 * OpenBLAS reads OPENBLAS_CORETYPE when it is loaded, so the program starts itself again with the kernel asked for: it
 * does not know every processor, and takes a slow kernel where it does not.
 */
#define _GNU_SOURCE

#include <cblas.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "precision/format.h"

enum { KITS = 4, PRECISIONS = 2, WAYS = KITS * PRECISIONS, MOST_REPEATS = 101 };

static const char *const kits[KITS] = {"cpu.avx512-bf16", "cpu.avx512", "cpu.avx2", "cpu.portable"};
static const hstep_precision precisions[PRECISIONS] = {HSTEP_PRECISION_FP16, HSTEP_PRECISION_BF16};

typedef struct shape {
    int m, n, k;
} shape;

static const shape shapes[] = {{256, 2304, 768}, {256, 768, 3072}, {256, 3072, 768},  {256, 50304, 768},
                               {768, 3072, 256}, {64, 128, 128},   {1024, 1024, 1024}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct options {
    const char *core, *forms;
    unsigned threads;
    int repeats;
    bool portable, wide;
} options;

typedef struct operands {
    const shape *shape;
    bool a_turned, b_turned;
    float *a, *b, *y;                  /* OpenBLAS's */
    hs_buffer *buffers[PRECISIONS][3]; /* ours */
    bool wide;                         /* they are f64 */
} operands;

/* Whether a way is measured: its lever is there and computes in its precision by itself. */
static bool takes_part(int way, const options *o, hs_backend *const *backends) {
    const int kit = way / PRECISIONS;
    return backends[kit] && (kit < KITS - 1 || o->portable) &&
           (kit > 0 || precisions[way % PRECISIONS] == HSTEP_PRECISION_BF16);
}

static void *checked(void *memory) {
    if (!memory) {
        fprintf(stderr, "matmul: out of memory\n");
        exit(1);
    }
    return memory;
}

static double now(unsigned threads) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Uniform in [-0.2, 0.2). */
static void fill(size_t count, float *x, unsigned seed) {
    uint32_t state = seed;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        x[i] = ((float)(state >> 8) * 0x1p-24F - 0.5F) * 0.4F;
    }
}

static void copy(size_t count, const float *x, hstep_format format, bool wide, void *y) {
    for (size_t i = 0; i < count; i++)
        if (wide)
            ((double *)y)[i] = (double)x[i];
        else
            ((uint16_t *)y)[i] = hs_encode(format, (double)x[i]);
}

static hstep_dtype dtype_of(bool wide, hstep_precision precision) {
    return wide ? HSTEP_DTYPE_F64 : precision == HSTEP_PRECISION_FP16 ? HSTEP_DTYPE_FP16 : HSTEP_DTYPE_BF16;
}

static operands make_operands(const shape *s, const options *o, hs_backend *backend) {
    const size_t counts[3] = {(size_t)s->m * (size_t)s->k, (size_t)s->k * (size_t)s->n, (size_t)s->m * (size_t)s->n};
    operands p = {.shape = s, .a_turned = o->forms[0] == 'T', .b_turned = o->forms[1] == 'T', .wide = o->wide};
    p.a = checked(aligned_alloc(64, (counts[0] * sizeof(float) / 64 + 1) * 64));
    p.b = checked(aligned_alloc(64, (counts[1] * sizeof(float) / 64 + 1) * 64));
    p.y = checked(aligned_alloc(64, (counts[2] * sizeof(float) / 64 + 1) * 64));
    fill(counts[0], p.a, 1);
    fill(counts[1], p.b, 2);
    for (int way = 0; way < PRECISIONS; way++) {
        const hstep_format format = hs_precision_format(precisions[way]);
        hs_buffer **buffers = p.buffers[way];
        for (int i = 0; i < 3; i++)
            if (backend->api->buffer_create(backend, counts[i] * hs_dtype_size(dtype_of(o->wide, precisions[way])),
                                            &buffers[i], NULL) != HSTEP_OK)
                checked(NULL);
        copy(counts[0], p.a, format, o->wide, buffers[0]->data);
        copy(counts[1], p.b, format, o->wide, buffers[1]->data);
    }
    memset(p.y, 0, counts[2] * sizeof(float));
    return p;
}

static void free_operands(operands *p, hs_backend *backend) {
    free(p->a);
    free(p->b);
    free(p->y);
    for (int way = 0; way < PRECISIONS; way++)
        for (int i = 0; i < 3; i++)
            backend->api->buffer_destroy(backend, p->buffers[way][i]);
}

static hs_view view_of(hs_buffer *buffer, hstep_dtype dtype, int rows, int columns, bool turned) {
    const size_t r = (size_t)(turned ? columns : rows), c = (size_t)(turned ? rows : columns);
    return (hs_view){.buffer = buffer, .dtype = dtype, .rank = 2, .dims = {r, c}, .strides = {c, 1}};
}

static hs_program *make_program(const operands *p, int way, hs_backend *backend) {
    const shape *s = p->shape;
    const hstep_precision precision = precisions[way];
    const hstep_dtype dtype = dtype_of(p->wide, precision);
    hs_buffer *const *buffers = p->buffers[way];
    const hs_call call = {.operation = HS_OP_MATMUL,
                          .precision = precision,
                          .attributes = {.a_form = p->a_turned ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE,
                                         .b_form = p->b_turned ? HSTEP_TRANSPOSE : HSTEP_NO_TRANSPOSE},
                          .input_count = 2,
                          .output_count = 1,
                          .inputs = {view_of(buffers[0], dtype, s->m, s->k, p->a_turned),
                                     view_of(buffers[1], dtype, s->k, s->n, p->b_turned)},
                          .outputs = {view_of(buffers[2], dtype, s->m, s->n, false)}};
    hs_program *program = NULL;
    hstep_error error = {0};
    if (backend->api->program_create(backend, &call, 1, &program, &error) != HSTEP_OK) {
        fprintf(stderr, "matmul: %s\n", error.message);
        exit(1);
    }
    return program;
}

static void run_blas(const operands *p) {
    const shape *s = p->shape;
    cblas_sgemm(CblasRowMajor, p->a_turned ? CblasTrans : CblasNoTrans, p->b_turned ? CblasTrans : CblasNoTrans, s->m,
                s->n, s->k, 1.0F, p->a, p->a_turned ? s->m : s->k, p->b, p->b_turned ? s->k : s->n, 0.0F, p->y, s->n);
}

/* Seconds of one product; backend NULL for OpenBLAS. */
static double time_of(const operands *p, hs_backend *backend, hs_program *program, int inner, unsigned threads) {
    const double start = now(threads);
    for (int i = 0; i < inner; i++)
        if (backend)
            (void)backend->api->program_run(backend, program, 0, 1, NULL);
        else
            run_blas(p);
    return (now(threads) - start) / inner;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* One row of the table; the ratios go into `ratios`, 0 where a kit is not there. */
static void measure(const shape *s, const options *o, hs_backend *const *backends, double *ratios) {
    static double blas[MOST_REPEATS], ours[WAYS][MOST_REPEATS], quotients[WAYS][MOST_REPEATS];
    hs_backend *owner = backends[KITS - 1];
    operands p = make_operands(s, o, owner);
    hs_program *programs[WAYS] = {NULL};
    const double work = 2.0 * s->m * s->n * s->k;
    for (int way = 0; way < WAYS; way++)
        if (takes_part(way, o, backends))
            programs[way] = make_program(&p, way % PRECISIONS, backends[way / PRECISIONS]);
    const int inner = 1 + (int)(0.004 / (work / 100e9));
    for (int repeat = -1; repeat < o->repeats; repeat++) {
        const int at = repeat < 0 ? 0 : repeat; /* the first one only warms up */
        blas[at] = time_of(&p, NULL, NULL, inner, o->threads);
        for (int way = 0; way < WAYS; way++)
            if (programs[way]) {
                ours[way][at] = time_of(&p, backends[way / PRECISIONS], programs[way], inner, o->threads);
                quotients[way][at] = blas[at] / ours[way][at];
            }
    }
    printf("%5d %6d %5d  %8.1f", s->m, s->n, s->k, work / median(blas, o->repeats) / 1e9);
    for (int way = 0; way < WAYS; way++) {
        ratios[way] = programs[way] ? median(quotients[way], o->repeats) : 0.0;
        if (programs[way])
            printf("    %6.1f x%-5.2f", work / median(ours[way], o->repeats) / 1e9, ratios[way]);
        if (programs[way])
            backends[way / PRECISIONS]->api->program_destroy(backends[way / PRECISIONS], programs[way]);
    }
    printf("\n");
    fflush(stdout);
    free_operands(&p, owner);
}

static void print_head(const options *o, hs_backend *const *backends) {
    printf("%s; OpenBLAS kernel %s; %u thread%s; forms %s; %s operands; %d interleaved repeats\n",
           backends[KITS - 1]->api->device(backends[KITS - 1]), openblas_get_corename(), o->threads,
           o->threads == 1 ? "" : "s", o->forms, o->wide ? "f64" : "16-bit", o->repeats);
    if (strcasecmp(openblas_get_corename(), o->core) != 0)
        printf("OpenBLAS has no kernel %s here: the ratios say nothing about it\n", o->core);
    printf("GFLOP/s and ratio to sgemm\n    m      n     k     sgemm");
    for (int way = 0; way < WAYS; way++)
        if (takes_part(way, o, backends))
            printf(" %11.11s %4s", kits[way / PRECISIONS] + 4, hstep_precision_name(precisions[way % PRECISIONS]));
    printf("\n");
}

static void print_means(double ratios[SHAPES][WAYS]) {
    printf("geometric mean of the ratios");
    for (int way = 0; way < WAYS; way++) {
        double sum = 0.0;
        for (int i = 0; i < SHAPES; i++)
            sum += log(ratios[i][way]);
        if (ratios[0][way] > 0.0)
            printf("          x%-5.2f", exp(sum / SHAPES));
    }
    printf("\n");
}

static options read_options(int argc, char **argv) {
    static const struct option known[] = {
        {"core", required_argument, NULL, 'c'},    {"threads", required_argument, NULL, 't'},
        {"repeats", required_argument, NULL, 'r'}, {"forms", required_argument, NULL, 'f'},
        {"slots", required_argument, NULL, 's'},   {"portable", no_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    options o = {.core = "SkylakeX", .forms = "NN", .threads = 1, .repeats = 9};
    bool help = false;
    int c;
    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (c) {
        case 'c':
            o.core = optarg;
            break;
        case 't':
            o.threads = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            o.repeats = (int)strtol(optarg, NULL, 10);
            break;
        case 'f':
            o.forms = optarg;
            break;
        case 's':
            o.wide = strcmp(optarg, "f64") == 0;
            if (!o.wide && strcmp(optarg, "16") != 0)
                o.threads = 0;
            break;
        case 'p':
            o.portable = true;
            break;
        case 'h':
            help = true;
            break;
        default:
            o.threads = 0;
        }
    }
    if (help || o.threads == 0 || o.repeats < 1 || o.repeats > MOST_REPEATS || strlen(o.forms) != 2) {
        fprintf(help ? stdout : stderr,
                "usage: bench_matmul [--core SkylakeX|Haswell] [--threads N] [--repeats 1..%d] [--forms NN|NT|TN|TT] "
                "[--slots 16|f64] [--portable]\n",
                MOST_REPEATS);
        exit(help ? 0 : 2);
    }
    return o;
}

/* OpenBLAS is loaded before main is reached. */
static void start_again_with(const options *o, char **argv) {
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core && strcasecmp(core, o->core) == 0)
        return;
    setenv("OPENBLAS_CORETYPE", o->core, 1);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    start_again_with(&o, argv);
    hs_backend *backends[KITS] = {NULL};
    double ratios[SHAPES][WAYS] = {{0}};
    for (int i = 0; i < KITS; i++)
        (void)hs_cpu_create_with_lever(o.threads, kits[i], &backends[i], NULL);
    checked(backends[KITS - 1]);
    openblas_set_num_threads((int)o.threads);
    print_head(&o, backends);
    for (int i = 0; i < SHAPES; i++)
        measure(&shapes[i], &o, backends, ratios[i]);
    print_means(ratios);
    for (int i = 0; i < KITS; i++)
        if (backends[i])
            backends[i]->api->destroy(backends[i]);
    return 0;
}
