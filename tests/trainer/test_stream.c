/* Text in pieces: characters whole, stop texts across any borders, not a byte lost. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/sample/stream.c"

typedef struct output {
    hs_stream stream;
    char *text;
    size_t size;
} output;

static void begin(output *o, const char **stops, size_t count) {
    *o = (output){.stream = {.stops = {stops, count}}};
    o->stream.out = open_memstream(&o->text, &o->size);
    cr_assert_not_null(o->stream.out);
}

static void end(output *o) {
    fclose(o->stream.out);
    hs_stream_free(&o->stream);
    free(o->text);
}

static void put(output *o, const char *bytes) { cr_assert(hs_stream_put(&o->stream, bytes, strlen(bytes))); }

static void expect(output *o, const char *text) {
    cr_assert_eq(fflush(o->stream.out), 0);
    cr_assert_eq(o->size, strlen(text), "%s, not %s", o->text, text);
    cr_assert_arr_eq(o->text, text, o->size);
}

Test(stream, characters_come_whole) {
    output o;
    begin(&o, NULL, 0);
    put(&o, "a\xc3");
    expect(&o, "a");
    put(&o, "\xa9\xe2");
    expect(&o, "a\xc3\xa9");
    put(&o, "\x82");
    expect(&o, "a\xc3\xa9");
    put(&o, "\xac\xf0\x9f\x99");
    expect(&o, "a\xc3\xa9\xe2\x82\xac");
    put(&o, "\x82");
    expect(&o, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
    end(&o);
}

/* Bytes that are no UTF-8 wait for nothing that cannot come, and what is cut off comes at the end. */
Test(stream, other_bytes_are_not_lost) {
    output o;
    begin(&o, NULL, 0);
    put(&o, "\xff\x80\x80\x80\x80");
    expect(&o, "\xff\x80\x80\x80\x80");
    put(&o, "\xe2(");
    expect(&o, "\xff\x80\x80\x80\x80\xe2(");
    put(&o, "\xe2\x82");
    expect(&o, "\xff\x80\x80\x80\x80\xe2(");
    hs_stream_flush(&o.stream);
    expect(&o, "\xff\x80\x80\x80\x80\xe2(\xe2\x82");
    end(&o);
    begin(&o, NULL, 0);
    cr_assert(hs_stream_put(&o.stream, "a\0b", 3));
    cr_assert_eq(o.size, 3);
    cr_assert_arr_eq(o.text, "a\0b", 3);
    end(&o);
}

/* Every way to cut a text into two or three pieces gives what the whole gives. */
static void check_cuts(const char *text, const char **stops, size_t count, const char *expected, bool stopped) {
    const size_t size = strlen(text);
    for (size_t a = 0; a <= size; ++a)
        for (size_t b = a; b <= size; ++b) {
            output o;
            begin(&o, stops, count);
            cr_assert(hs_stream_put(&o.stream, text, a));
            cr_assert(hs_stream_put(&o.stream, text + a, b - a));
            cr_assert(hs_stream_put(&o.stream, text + b, size - b));
            hs_stream_flush(&o.stream);
            expect(&o, expected);
            cr_assert_eq(o.stream.stopped, stopped);
            end(&o);
        }
}

Test(stream, stops_across_borders) {
    const char *end_mark[] = {"END"}, *two[] = {"xyz", "yb"}, *nested[] = {"aab"}, *euro[] = {"\xe2\x82\xac"};
    check_cuts("the END of it", end_mark, 1, "the ", true);
    check_cuts("the EN of ENEND", end_mark, 1, "the EN of EN", true);
    check_cuts("no end, EN", end_mark, 1, "no end, EN", false);
    check_cuts("axyb", two, 2, "ax", true);
    check_cuts("aaab", nested, 1, "a", true);
    check_cuts("5 \xe2\x82\xac and more", euro, 1, "5 ", true);
    check_cuts("END", end_mark, 1, "", true);
}

Test(stream, what_may_be_a_stop_text_waits_and_the_rest_does_not) {
    const char *stops[] = {"\n\n"};
    output o;
    begin(&o, stops, 1);
    put(&o, "line\n");
    expect(&o, "line");
    put(&o, "next");
    expect(&o, "line\nnext");
    put(&o, "\n");
    put(&o, "\n");
    expect(&o, "line\nnext");
    cr_assert(o.stream.stopped);
    put(&o, "more");
    hs_stream_flush(&o.stream);
    expect(&o, "line\nnext");
    end(&o);
}
