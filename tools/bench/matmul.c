/*
 * Products beside OpenBLAS sgemm: every lever that this processor can use, fp16 and bf16, and oneDNN in f32 and bf16,
 * over seven shapes of a decoder. Packing and the last rounding count on our side, and casting where the operands are
 * f64 (--slots f64) and not 16 bits; OpenBLAS gets f32 operands. Repeats are interleaved, a figure is the median of the
 * ratios of each repeat. One thread is timed by its processor time, several by the clock on the wall.
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

#include "bench/onednn.h"
#include "cpu/cpu.h"
#include "cpu/kernel.h"
#include "precision/format.h"

enum { PRECISIONS = 2, MOST_REPEATS = 101, LAST_OF_OURS = 8, ONEDNN_F32 = 9, ONEDNN_BF16 = 10, WAYS = 11 };

static const hstep_precision precisions[PRECISIONS] = {HSTEP_PRECISION_FP16, HSTEP_PRECISION_BF16};

/* What is measured: levers in a precision (its place above), then oneDNN. */
static const struct way {
    const char *name;
    int precision;
} ways[WAYS] = {{"cpu.amx-bf16", 1},
                {"cpu.amx-fp16", 0},
                {"cpu.avx512-bf16", 1},
                {"cpu.avx512", 0},
                {"cpu.avx512", 1},
                {"cpu.avx2", 0},
                {"cpu.avx2", 1},
                {"cpu.portable", 0},
                {"cpu.portable", 1},
                [ONEDNN_F32] = {"oneDNN f32", 0},
                [ONEDNN_BF16] = {"oneDNN bf16", 1}};

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

/* In one of three ways: a program of ours, oneDNN, or else OpenBLAS. */
typedef struct contender {
    hs_backend *backend;
    hs_program *program;
    hs_onednn *onednn;
} contender;

static contender make_contender(const operands *p, int way, const options *o, hs_backend *const *backends) {
    const shape *s = p->shape;
    if (way == ONEDNN_F32)
        return (contender){.onednn =
                               hs_onednn_create(false, s->m, s->n, s->k, p->a_turned, p->b_turned, p->a, p->b, p->y)};
    if (way == ONEDNN_BF16) {
        hs_buffer *const *halves = p->buffers[ways[way].precision];
        return (contender){.onednn = p->wide ? NULL
                                             : hs_onednn_create(true, s->m, s->n, s->k, p->a_turned, p->b_turned,
                                                                halves[0]->data, halves[1]->data, halves[2]->data)};
    }
    if (!backends[way] || (way >= LAST_OF_OURS - 1 && !o->portable))
        return (contender){0};
    return (contender){.backend = backends[way], .program = make_program(p, ways[way].precision, backends[way])};
}

static bool takes_part(const contender *c) { return c->program || c->onednn; }

static void free_contender(contender *c) {
    if (c->program)
        c->backend->api->program_destroy(c->backend, c->program);
    hs_onednn_destroy(c->onednn);
}

static void run_blas(const operands *p) {
    const shape *s = p->shape;
    cblas_sgemm(CblasRowMajor, p->a_turned ? CblasTrans : CblasNoTrans, p->b_turned ? CblasTrans : CblasNoTrans, s->m,
                s->n, s->k, 1.0F, p->a, p->a_turned ? s->m : s->k, p->b, p->b_turned ? s->k : s->n, 0.0F, p->y, s->n);
}

/* Seconds of one product; of OpenBLAS where `c` is empty. */
static double time_of(const operands *p, const contender *c, int inner, unsigned threads) {
    const double start = now(threads);
    for (int i = 0; i < inner; i++)
        if (c->program)
            (void)c->backend->api->program_run(c->backend, c->program, 0, 1, NULL);
        else if (c->onednn)
            hs_onednn_run(c->onednn);
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

/* One row of the table; the ratios go into `ratios`, 0 where a way is not there. */
static void measure(const shape *s, const options *o, hs_backend *const *backends, double *ratios) {
    static double blas[MOST_REPEATS], theirs[WAYS][MOST_REPEATS], quotients[WAYS][MOST_REPEATS];
    hs_backend *owner = backends[LAST_OF_OURS];
    operands p = make_operands(s, o, owner);
    contender contenders[WAYS];
    const contender openblas = {0};
    const double work = 2.0 * s->m * s->n * s->k;
    for (int way = 0; way < WAYS; way++)
        contenders[way] = make_contender(&p, way, o, backends);
    const int inner = 1 + (int)(0.004 / (work / 100e9));
    for (int repeat = -1; repeat < o->repeats; repeat++) {
        const int at = repeat < 0 ? 0 : repeat; /* the first one only warms up */
        blas[at] = time_of(&p, &openblas, inner, o->threads);
        for (int way = 0; way < WAYS; way++)
            if (takes_part(&contenders[way])) {
                theirs[way][at] = time_of(&p, &contenders[way], inner, o->threads);
                quotients[way][at] = blas[at] / theirs[way][at];
            }
    }
    printf("%5d %6d %5d  %8.1f", s->m, s->n, s->k, work / median(blas, o->repeats) / 1e9);
    for (int way = 0; way < WAYS; way++) {
        ratios[way] = takes_part(&contenders[way]) ? median(quotients[way], o->repeats) : 0.0;
        if (ratios[way] > 0.0)
            printf("    %6.1f x%-5.2f", work / median(theirs[way], o->repeats) / 1e9, ratios[way]);
        free_contender(&contenders[way]);
    }
    printf("\n");
    fflush(stdout);
    free_operands(&p, owner);
}

static bool is_listed(int way, const options *o, hs_backend *const *backends) {
    if (way > LAST_OF_OURS)
        return HS_BENCH_ONEDNN && (way == ONEDNN_F32 || !o->wide);
    return backends[way] && (way < LAST_OF_OURS - 1 || o->portable);
}

static void print_head(const options *o, hs_backend *const *backends) {
    const hs_backend *any = backends[LAST_OF_OURS];
    printf("%s; OpenBLAS kernel %s; %u thread%s; forms %s; %s operands; %d interleaved repeats\n",
           any->api->device(any), openblas_get_corename(), o->threads, o->threads == 1 ? "" : "s", o->forms,
           o->wide ? "f64" : "16-bit", o->repeats);
    if (strcasecmp(openblas_get_corename(), o->core) != 0)
        printf("OpenBLAS has no kernel %s here: the ratios say nothing about it\n", o->core);
    printf("GFLOP/s and ratio to sgemm\n    m      n     k     sgemm");
    for (int way = 0; way < WAYS; way++)
        if (is_listed(way, o, backends))
            printf(" %11.11s %4.4s", ways[way].name + (way <= LAST_OF_OURS ? 4 : 0),
                   way <= LAST_OF_OURS ? hstep_precision_name(precisions[ways[way].precision]) : "");
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

/* OpenBLAS is loaded before main is reached, and oneDNN takes its threads from there too. */
static void start_again_with(const options *o, char **argv) {
    char threads[16];
    (void)snprintf(threads, sizeof threads, "%u", o->threads);
    const char *core = getenv("OPENBLAS_CORETYPE");
    if (core && strcasecmp(core, o->core) == 0)
        return;
    setenv("OPENBLAS_CORETYPE", o->core, 1);
    setenv("OMP_WAIT_POLICY", "passive", 0);
    setenv("OMP_NUM_THREADS", threads, 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    start_again_with(&o, argv);
    hs_backend *backends[WAYS] = {NULL};
    double ratios[SHAPES][WAYS] = {{0}};
    for (int i = 0; i <= LAST_OF_OURS; i++)
        (void)hs_cpu_create_with_lever(o.threads, ways[i].name, &backends[i], NULL);
    checked(backends[LAST_OF_OURS]);
    openblas_set_num_threads((int)o.threads);
    print_head(&o, backends);
    for (int i = 0; i < SHAPES; i++)
        measure(&shapes[i], &o, backends, ratios[i]);
    print_means(ratios);
    for (int i = 0; i < WAYS; i++)
        if (backends[i])
            backends[i]->api->destroy(backends[i]);
    return 0;
}
