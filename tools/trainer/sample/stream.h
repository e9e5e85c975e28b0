/*
 * Text that comes in pieces of any size and goes out at once, but for two things: a character of several bytes goes out
 * whole, and what may be the beginning of a stop text waits until it is known to be none.
 */
#ifndef HS_TRAINER_STREAM_H
#define HS_TRAINER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "trainer/options/options.h"

typedef struct hs_stream {
    FILE *out;
    hs_texts stops;
    char *held; /* not written yet */
    size_t held_size, held_room;
    char last; /* byte that was written */
    bool stopped;
} hs_stream;

/* Takes bytes; once a stop text has come, nothing more. False without memory. */
bool hs_stream_put(hs_stream *stream, const char *bytes, size_t size);

/* Writes what waits. */
void hs_stream_flush(hs_stream *stream);

void hs_stream_free(hs_stream *stream);

#endif
