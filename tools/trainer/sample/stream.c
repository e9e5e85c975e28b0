#include "trainer/sample/stream.h"

#include <stdlib.h>
#include <string.h>

/* How many bytes a character has by its first one; 1 for a byte that begins none. */
static size_t character_size(unsigned char lead) {
    return lead < 0xc2 || lead > 0xf4 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static bool is_continuation(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; }

/* Without a character at the end that is not complete. */
static size_t whole_characters(const char *bytes, size_t size) {
    size_t tail = 0;
    while (tail < 3 && tail < size && is_continuation(bytes[size - 1 - tail]))
        ++tail;
    if (tail == size)
        return size;
    const size_t wanted = character_size((unsigned char)bytes[size - 1 - tail]);
    return wanted > tail + 1 ? size - 1 - tail : size;
}

/* Where the first stop text begins, or the end. */
static size_t find_stop(const hs_stream *stream) {
    for (size_t at = 0; at < stream->held_size; ++at)
        for (size_t i = 0; i < stream->stops.count; ++i) {
            const size_t size = strlen(stream->stops.items[i]);
            if (size <= stream->held_size - at && memcmp(stream->held + at, stream->stops.items[i], size) == 0)
                return at;
        }
    return stream->held_size;
}

/* Without an end that a stop text may begin with. */
static size_t free_of_beginnings(const hs_stream *stream) {
    for (size_t at = 0; at < stream->held_size; ++at)
        for (size_t i = 0; i < stream->stops.count; ++i)
            if (strncmp(stream->held + at, stream->stops.items[i], stream->held_size - at) == 0)
                return at;
    return stream->held_size;
}

/* Writes the first `count` bytes of what waits. */
static void write_out(hs_stream *stream, size_t count) {
    if (count == 0)
        return;
    stream->last = stream->held[count - 1];
    fwrite(stream->held, 1, count, stream->out);
    fflush(stream->out);
    stream->held_size -= count;
    memmove(stream->held, stream->held + count, stream->held_size);
}

static bool hold(hs_stream *stream, const char *bytes, size_t size) {
    if (stream->held_size + size > stream->held_room) {
        const size_t room = 2 * (stream->held_size + size);
        char *moved = realloc(stream->held, room);
        if (moved == NULL)
            return false;
        stream->held = moved;
        stream->held_room = room;
    }
    memcpy(stream->held + stream->held_size, bytes, size);
    stream->held_size += size;
    return true;
}

bool hs_stream_put(hs_stream *stream, const char *bytes, size_t size) {
    if (stream->stopped || size == 0)
        return true;
    if (!hold(stream, bytes, size))
        return false;
    const size_t stop = find_stop(stream);
    stream->stopped = stop < stream->held_size;
    write_out(stream, stream->stopped ? stop : whole_characters(stream->held, free_of_beginnings(stream)));
    if (stream->stopped)
        stream->held_size = 0;
    return true;
}

void hs_stream_flush(hs_stream *stream) { write_out(stream, stream->held_size); }

void hs_stream_free(hs_stream *stream) { free(stream->held); }
