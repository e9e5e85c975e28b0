/* How the exact kernels walk through views: by rows, and by spans where every view is dense. */
#ifndef HS_CPU_EXACT_VIEW_H
#define HS_CPU_EXACT_VIEW_H

#include <omp.h>

#include "cpu/exact/half.h"
#include "cpu/kernel.h"

/*
 * Elements from which a loop is worth waking the other threads: cheap ones move memory, costly ones divide or take
 * exponentials.
 */
enum { HS_PARALLEL_CHEAP = 16384, HS_PARALLEL_COSTLY = 2048 };

/* Length of a span: three operands of it fit in a first-level cache. */
enum { HS_SPAN = 1024 };

/* Elements between rows. Only rows may have a pitch: further dimensions are without gaps. */
static inline size_t hs_pitch(const hs_view *view) {
    return view->rank > 1 ? view->strides[view->rank - 2] : hs_columns(view);
}

static inline const double *hs_in_row(const hs_call *call, unsigned i, size_t row) {
    return hs_in(call, i) + row * hs_pitch(&call->inputs[i]);
}

static inline double *hs_out_row(const hs_call *call, unsigned i, size_t row) {
    return hs_out(call, i) + row * hs_pitch(&call->outputs[i]);
}

/* ---- Operands that may stand in 16 bits ---- */

/* `count` elements from element `at` on: where they stand, or widened into `room`. */
static inline const double *hs_read(const hs_view *view, size_t at, size_t count, double *room) {
    const unsigned char *data = view->buffer->data + view->offset;
    if (!hs_dtype_is_half(view->dtype))
        return (const double *)(const void *)data + at;
    hs_widen_all(view->dtype, count, (const uint16_t *)(const void *)data + at, room);
    return room;
}

/* Where elements are computed that hs_write then stores: where they are to stand, or in `room`. */
static inline double *hs_place(const hs_view *view, size_t at, double *room) {
    return hs_dtype_is_half(view->dtype) ? room : (double *)(void *)(view->buffer->data + view->offset) + at;
}

/* Stores what was computed in hs_place. */
static inline void hs_write(const hs_view *view, size_t at, size_t count, const double *y) {
    if (hs_dtype_is_half(view->dtype))
        hs_narrow_all(view->dtype, count, y, (uint16_t *)(void *)(view->buffer->data + view->offset) + at);
}

/* A whole row. Rooms for rows come from scratch: hs_row_rooms_bytes in all, hs_row_room for the calling thread. */
static inline const double *hs_read_row(const hs_view *view, size_t row, double *room) {
    return hs_read(view, row * hs_pitch(view), hs_columns(view), room);
}

static inline double *hs_place_row(const hs_view *view, size_t row, double *room) {
    return hs_place(view, row * hs_pitch(view), room);
}

static inline void hs_write_row(const hs_view *view, size_t row, const double *y) {
    hs_write(view, row * hs_pitch(view), hs_columns(view), y);
}

static inline size_t hs_row_room_length(const hs_view *view) { return (hs_columns(view) + 7) / 8 * 8; }

/* Rooms for `rooms` rows like that of `view` and for every thread. */
static inline size_t hs_row_rooms_bytes(const hs_view *view, size_t rooms, unsigned threads) {
    return threads * rooms * hs_row_room_length(view) * sizeof(double);
}

/* Room number `room` of `rooms` of the calling thread. */
static inline double *hs_row_room(const hs_view *view, size_t rooms, size_t room, void *scratch) {
    return (double *)scratch + ((size_t)omp_get_thread_num() * rooms + room) * hs_row_room_length(view);
}

/* ---- Element by element ---- */

static inline bool hs_dense(const hs_view *view) { return hs_pitch(view) == hs_columns(view); }

/* The work of an element-by-element operation cut into pieces of at most HS_SPAN elements in one row. */
typedef struct hs_spans {
    size_t count, total;
    size_t columns, per_row; /* where all operands are dense, they are one row */
} hs_spans;

typedef struct hs_span {
    size_t row, column, length;
} hs_span;

/* Over output 0, with all outputs and the first `inputs` inputs alike in shape. */
static inline hs_spans hs_spans_of(const hs_call *call, unsigned inputs) {
    const size_t total = hs_view_elements(&call->outputs[0]);
    bool flat = true;
    for (unsigned i = 0; i < inputs; i++)
        flat = flat && hs_dense(&call->inputs[i]);
    for (unsigned i = 0; i < call->output_count; i++)
        flat = flat && hs_dense(&call->outputs[i]);
    if (total == 0)
        return (hs_spans){.per_row = 1};
    const size_t rows = flat ? 1 : hs_rows(&call->outputs[0]), columns = total / rows;
    const size_t per_row = (columns + HS_SPAN - 1) / HS_SPAN;
    return (hs_spans){rows * per_row, total, columns, per_row};
}

static inline hs_span hs_span_at(const hs_spans *spans, size_t i) {
    const size_t column = i % spans->per_row * HS_SPAN, rest = spans->columns - column;
    return (hs_span){i / spans->per_row, column, rest < HS_SPAN ? rest : HS_SPAN};
}

static inline const double *hs_read_span(const hs_view *view, const hs_span *span, double *room) {
    return hs_read(view, span->row * hs_pitch(view) + span->column, span->length, room);
}

static inline double *hs_place_span(const hs_view *view, const hs_span *span, double *room) {
    return hs_place(view, span->row * hs_pitch(view) + span->column, room);
}

static inline void hs_write_span(const hs_view *view, const hs_span *span, const double *y) {
    hs_write(view, span->row * hs_pitch(view) + span->column, span->length, y);
}

#endif
