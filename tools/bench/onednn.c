#include "bench/onednn.h"

#include <stddef.h>
#include <stdlib.h>

#if HS_BENCH_ONEDNN
#include <dnnl.h>

struct hs_onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memories[3];
};

/* Strides say which way an operand lies. */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t layout;

static bool make_layout(layout *made, bool half, int rows, int columns, bool turned) {
    const dnnl_dims_t dims = {rows, columns}, strides = {turned ? 1 : columns, turned ? rows : 1};
    return dnnl_memory_desc_create_with_strides(made, 2, dims, half ? dnnl_bf16 : dnnl_f32, strides) == dnnl_success;
}

static bool make_primitive(hs_onednn *p, layout a, layout b, layout y) {
    dnnl_primitive_desc_t description = NULL;
    const bool made = dnnl_matmul_primitive_desc_create(&description, p->engine, a, b, NULL, y, NULL) == dnnl_success &&
                      dnnl_primitive_create(&p->primitive, description) == dnnl_success;
    if (description != NULL)
        (void)dnnl_primitive_desc_destroy(description);
    return made;
}

static bool make_memory(hs_onednn *p, int i, layout at, void *data) {
    return dnnl_memory_create(&p->memories[i], at, p->engine, data) == dnnl_success;
}

static void free_layout(layout made) { (void)dnnl_memory_desc_destroy(made); }
#else
typedef dnnl_memory_desc_t layout;

static bool make_layout(layout *made, bool half, int rows, int columns, bool turned) {
    const dnnl_dims_t dims = {rows, columns}, strides = {turned ? 1 : columns, turned ? rows : 1};
    return dnnl_memory_desc_init_by_strides(made, 2, dims, half ? dnnl_bf16 : dnnl_f32, strides) == dnnl_success;
}

static bool make_primitive(hs_onednn *p, layout a, layout b, layout y) {
    dnnl_matmul_desc_t operation;
    dnnl_primitive_desc_t description = NULL;
    const bool made = dnnl_matmul_desc_init(&operation, &a, &b, NULL, &y) == dnnl_success &&
                      dnnl_primitive_desc_create(&description, &operation, NULL, p->engine, NULL) == dnnl_success &&
                      dnnl_primitive_create(&p->primitive, description) == dnnl_success;
    if (description != NULL)
        (void)dnnl_primitive_desc_destroy(description);
    return made;
}

static bool make_memory(hs_onednn *p, int i, layout at, void *data) {
    return dnnl_memory_create(&p->memories[i], &at, p->engine, data) == dnnl_success;
}

static void free_layout(layout made) { (void)made; }
#endif

static bool fill(hs_onednn *p, const layout layouts[3], void *const data[3]) {
    if (dnnl_engine_create(&p->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) != dnnl_success)
        return false;
    for (int i = 0; i < 3; i++)
        if (!make_memory(p, i, layouts[i], data[i]))
            return false;
    return make_primitive(p, layouts[0], layouts[1], layouts[2]);
}

hs_onednn *hs_onednn_create(bool half, int m, int n, int k, bool a_turned, bool b_turned, void *a, void *b, void *y) {
    layout layouts[3];
    void *const data[3] = {a, b, y};
    if (!make_layout(&layouts[0], half, m, k, a_turned) || !make_layout(&layouts[1], half, k, n, b_turned) ||
        !make_layout(&layouts[2], half, m, n, false))
        return NULL;
    hs_onednn *made = calloc(1, sizeof *made);
    const bool filled = made != NULL && fill(made, layouts, data);
    for (int i = 0; i < 3; i++)
        free_layout(layouts[i]);
    if (filled)
        return made;
    hs_onednn_destroy(made);
    return NULL;
}

void hs_onednn_destroy(hs_onednn *p) {
    if (p == NULL)
        return;
    if (p->primitive != NULL)
        (void)dnnl_primitive_destroy(p->primitive);
    for (int i = 0; i < 3; i++)
        if (p->memories[i] != NULL)
            (void)dnnl_memory_destroy(p->memories[i]);
    if (p->stream != NULL)
        (void)dnnl_stream_destroy(p->stream);
    if (p->engine != NULL)
        (void)dnnl_engine_destroy(p->engine);
    free(p);
}

void hs_onednn_run(hs_onednn *p) {
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, p->memories[0]}, {DNNL_ARG_WEIGHTS, p->memories[1]}, {DNNL_ARG_DST, p->memories[2]}};
    if (dnnl_primitive_execute(p->primitive, p->stream, 3, arguments) != dnnl_success ||
        dnnl_stream_wait(p->stream) != dnnl_success)
        abort();
}

#else

hs_onednn *hs_onednn_create(bool half, int m, int n, int k, bool a_turned, bool b_turned, void *a, void *b, void *y) {
    (void)half, (void)m, (void)n, (void)k, (void)a_turned, (void)b_turned, (void)a, (void)b, (void)y;
    return NULL;
}

void hs_onednn_destroy(hs_onednn *product) { (void)product; }
void hs_onednn_run(hs_onednn *product) { (void)product; }

#endif
