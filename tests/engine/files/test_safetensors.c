/* The format: what is written can be read, and what is wrong with a file is said. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/files/tensor_file.h"
#include "support/folder.h"
#include "support/memory_file.h"
#include "support/models.h"

/* ---- Writing and reading ---- */

static const size_t two_by_three[] = {2, 3}, none[] = {0, 4}, five[] = {5};

static hs_tensor_writer *declare_samples(void) {
    hs_tensor_writer *writer = NULL;
    hstep_error e = {0};
    hs_test_expect_ok(hs_tensor_writer_create(&writer, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_text(writer, "note", "\"quoted\" and \xc3\xa4", &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "empty", HSTEP_STORAGE_F64, 2, none, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "matrix", HSTEP_STORAGE_F64, 2, two_by_three, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "a \"name\"\n", HSTEP_STORAGE_F32, 1, five, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "number", HSTEP_STORAGE_U64, 0, NULL, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "bytes", HSTEP_STORAGE_U8, 1, five, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "halves", HSTEP_STORAGE_F16, 1, five, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "brains", HSTEP_STORAGE_BF16, 1, five, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_declare(writer, "none left", HSTEP_STORAGE_U8, 2, none, &e), &e);
    return writer;
}

static const double matrix[6] = {1, -0.0, 5e-324, -INFINITY, 1e308, 0.1};
static const float singles[5] = {1.5f, -0.0f, 1e-45f, 3e38f, -2};
static const uint64_t number = UINT64_MAX - 1;
static const unsigned char bytes[5] = {0, 255, 1, 2, 3};
static const uint16_t halves[5] = {0x3c00, 0x8000, 1, 0x7bff, 0xfc00}, brains[5] = {0x3f80, 0x8000, 1, 0x7f7f, 0x7f80};

/* In pieces that end in the middle of numbers and of tensors. */
static void write_samples(hs_tensor_writer *writer, size_t piece) {
    unsigned char all[93];
    hstep_error e = {0};
    memcpy(all, matrix, 48);
    memcpy(all + 48, singles, 20);
    memcpy(all + 68, &number, 8);
    memcpy(all + 76, bytes, 5);
    memcpy(all + 81, halves, 10);
    memcpy(all + 91, brains, 2);
    for (size_t at = 0; at < sizeof all; at += piece)
        hs_test_expect_ok(
            hs_tensor_writer_write(writer, all + at, sizeof all - at < piece ? sizeof all - at : piece, &e), &e);
    hs_test_expect_ok(hs_tensor_writer_write(writer, brains + 1, 8, &e), &e);
}

static hstep_tensor_file *open_samples(const char *path, size_t piece) {
    hstep_error e = {0};
    hs_tensor_writer *writer = declare_samples();
    hs_test_expect_ok(hs_tensor_writer_begin(writer, &hs_files_posix, path, &e), &e);
    write_samples(writer, piece);
    hs_test_expect_ok(hs_tensor_writer_commit(writer, &e), &e);
    hs_tensor_writer_destroy(writer);
    hstep_tensor_file *file = NULL;
    hs_test_expect_ok(hstep_tensor_file_open(path, &file, &e), &e);
    return file;
}

static size_t find(const hstep_tensor_file *file, const char *name) {
    const size_t index = hstep_tensor_file_find(file, name);
    cr_assert_neq(index, SIZE_MAX, "%s", name);
    return index;
}

Test(safetensors, round_trip, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hstep_tensor_file *file = open_samples("samples", 7);
    hstep_error e = {0};
    double read[6];
    hstep_tensor_info info;
    cr_expect_eq(hstep_tensor_file_count(file), 8);
    cr_expect(hstep_tensor_file_has_checksums(file));
    cr_expect_str_eq(hstep_tensor_file_text(file, "note"), "\"quoted\" and \xc3\xa4");
    cr_expect_null(hstep_tensor_file_text(file, "nothing"));
    hs_test_expect_ok(hstep_tensor_file_verify(file, &e), &e);
    hs_test_expect_ok(hstep_tensor_file_read(file, find(file, "matrix"), 0, 6, read, &e), &e);
    cr_expect(memcmp(read, matrix, sizeof matrix) == 0);
    hs_test_expect_ok(hstep_tensor_file_read(file, find(file, "matrix"), 2, 3, read, &e), &e);
    cr_expect(memcmp(read, matrix + 2, 3 * sizeof *matrix) == 0, "a part from the middle");
    hs_test_expect_ok(hstep_tensor_file_read(file, find(file, "a \"name\"\n"), 0, 5, read, &e), &e);
    for (int i = 0; i < 5; i++)
        cr_expect(memcmp(&read[i], &(double){(double)singles[i]}, sizeof *read) == 0, "single %d", i);
    hs_test_expect_ok(hstep_tensor_file_read(file, find(file, "halves"), 0, 5, read, &e), &e);
    cr_expect(memcmp(read, (double[]){1, -0.0, 0x1p-24, 65504, -INFINITY}, 5 * sizeof *read) == 0);
    hs_test_expect_ok(hstep_tensor_file_read(file, find(file, "brains"), 0, 5, read, &e), &e);
    cr_expect(memcmp(read, (double[]){1, -0.0, 0x1p-133, 0x1.fep127, INFINITY}, 5 * sizeof *read) == 0);
    hs_test_expect_ok(hstep_tensor_file_tensor(file, find(file, "matrix"), &info, &e), &e);
    cr_expect(info.rank == 2 && info.dims[0] == 2 && info.dims[1] == 3 && info.elements == 6 && info.bytes == 48);
    cr_expect_eq(info.offset % 8, 0, "the tensors begin at a multiple of 8");
    hs_test_expect_ok(hstep_tensor_file_tensor(file, find(file, "number"), &info, &e), &e);
    cr_expect_eq(info.rank, 0);
    uint64_t stored = 0;
    hs_test_expect_ok(hs_tensor_file_read_bytes(file, info.offset, &stored, sizeof stored, &e), &e);
    cr_expect_eq(stored, number);
    cr_expect_eq(hstep_tensor_file_read(file, find(file, "number"), 0, 1, read, &e), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_tensor_file_read(file, find(file, "matrix"), 4, 3, read, &e), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_tensor_file_tensor(file, 8, &info, &e), HSTEP_ERROR_ARGUMENT);
    hstep_tensor_file_close(file);
}

Test(safetensors, bytes_do_not_depend_on_pieces, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hstep_tensor_file_close(open_samples("small", 1));
    hstep_tensor_file_close(open_samples("large", 1000));
    cr_expect(hs_test_same_file("small", "large"));
    cr_expect_eq(hs_test_count_names(".tmp"), 0);
}

Test(safetensors, writer_refuses, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hstep_error e = {0};
    hs_tensor_writer *writer = declare_samples();
    cr_expect_eq(hs_tensor_writer_declare(writer, "matrix", HSTEP_STORAGE_F64, 1, five, &e), HSTEP_ERROR_ARGUMENT);
    cr_expect(strstr(e.message, "\"matrix\"") != NULL, "%s", e.message);
    cr_expect_eq(hs_tensor_writer_declare(writer, "__metadata__", HSTEP_STORAGE_F64, 1, five, &e),
                 HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hs_tensor_writer_declare(writer, "\xff", HSTEP_STORAGE_F64, 1, five, &e), HSTEP_ERROR_ARGUMENT);
    const size_t huge[] = {SIZE_MAX / 4, 3};
    cr_expect_eq(hs_tensor_writer_declare(writer, "huge", HSTEP_STORAGE_F64, 2, huge, &e), HSTEP_ERROR_SHAPE);
    hs_tensor_writer_destroy(writer);

    writer = declare_samples();
    hs_test_expect_ok(hs_tensor_writer_begin(writer, &hs_files_posix, "file", &e), &e);
    cr_expect_eq(hs_tensor_writer_commit(writer, &e), HSTEP_ERROR_ARGUMENT, "bytes are missing");
    write_samples(writer, 100);
    cr_expect_eq(hs_tensor_writer_write(writer, "x", 1, &e), HSTEP_ERROR_ARGUMENT, "one byte too many");
    hs_tensor_writer_destroy(writer);
    cr_expect_not(hs_test_exists("file"));
    cr_expect_eq(hs_test_count_names(".tmp"), 0);
}

Test(safetensors, writer_replaces_regular_files_only, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hstep_error e = {0};
    cr_assert_eq(mkdir("folder", 0777), 0);
    cr_assert_eq(mkfifo("pipe", 0666), 0);
    const char *const paths[] = {"folder", "pipe", "/dev/null", "missing/file", "folder/"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        hs_tensor_writer *writer = declare_samples();
        e.message[0] = '\0';
        cr_expect_eq(hs_tensor_writer_begin(writer, &hs_files_posix, paths[i], &e), HSTEP_ERROR_OUTPUT_FILE, "%s",
                     paths[i]);
        cr_expect(strstr(e.message, paths[i]) != NULL, "%s", e.message);
        hs_tensor_writer_destroy(writer);
    }
    cr_expect_eq(hs_test_count_names(".tmp"), 0);
}

/* ---- Files that are wrong ---- */

/* Opens a file of this header and so many bytes of data after it. */
static hstep_status open_text(const char *header, size_t data, hstep_tensor_file **file, hstep_error *error) {
    static unsigned char image[1 << 16];
    static hs_test_memory_file memory;
    static hs_files files;
    const uint64_t length = strlen(header);
    cr_assert_lt(length + data + 8, sizeof image);
    memcpy(image, &length, sizeof length);
    memcpy(image + 8, header, (size_t)length);
    memset(image + 8 + length, 1, data);
    memory = (hs_test_memory_file){image, 8 + (size_t)length + data};
    files = hs_test_memory_files(&memory);
    return hs_tensor_file_open(&files, "FILE", file, error);
}

typedef struct bad_header {
    const char *text;
    size_t data;
    const char *says; /* part of the message */
} bad_header;

static const bad_header bad_headers[] = {
    {"", 0, "does not begin with '{'"},
    {"[]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{\"a\":", 0, "'FILE', byte 1"},
    {"{}", 1, "byte 10: the bytes from here on belong to no tensor"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
     "\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]}}",
     16, "duplicate"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 7,
     "\"a\": its bytes 0 to 8 lie outside the 7"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 9, "belong to no tensor"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,0]}}", 8, "lie outside"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]}}", 9, "bytes before it belong to no tensor"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12, "\"b\": its bytes overlap"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8, "overlap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
     3, "\"b\": its bytes overlap"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "2 elements of type F64 do not fill its 8"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8.0]}}", 8, "\"data_offsets\""},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8,8]}}", 8, "\"data_offsets\""},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[-8,0]}}", 8, "\"data_offsets\""},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8, "dimension"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[true],\"data_offsets\":[0,8]}}", 8, "dimension"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,8]}}", 8, "more than 8 dimensions"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967297],\"data_offsets\":[0,8]}}", 8, "can be counted"},
    /* 2^61 + 1 elements of 8 bytes are 8 bytes, if nobody looks at the overflow */
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693953],\"data_offsets\":[0,8]}}", 8, "do not fill"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":1,\"data_offsets\":[0,8]}}", 8, "\"shape\""},
    {"{\"a\":{\"dtype\":\"f64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "type \"f64\" is not known"},
    {"{\"a\":{\"dtype\":\"F128\",\"shape\":[1],\"data_offsets\":[0,16]}}", 16, "type \"F128\" is not known"},
    {"{\"a\":{\"dtype\":64,\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "\"dtype\""},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "is not described by"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8],\"more\":1}}", 8, "is not described by"},
    {"{\"a\":[0,8]}", 8, "is not described by"},
    {"{\"__metadata__\":1}", 0, "\"__metadata__\" is no object"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "is no text"},
    {"{\"__metadata__\":{\"schema\":\"halfstep.checkpoint/1\"}}", 0, "checksum is not where"},
    {"{\"__metadata__\":{\"xxh3\":\"0123456789abcdef\"}}", 0, "checksum is another"},
    {"{\"__metadata__\":{\"xxh3.a\":\"0123456789abcdef\"}}", 0, "checksum is not where"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}} x", 8, "end of file"},
    {"{\"\\u0000\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "byte"},
    {"{\"\xff\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "unable to decode"},
};

Test(safetensors, names_what_is_wrong) {
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        const bad_header *bad = &bad_headers[i];
        hstep_tensor_file *file = NULL;
        hstep_error e = {0};
        cr_expect_eq(open_text(bad->text, bad->data, &file, &e), HSTEP_ERROR_INPUT_FILE, "%s", bad->text);
        cr_expect(strstr(e.message, bad->says) != NULL && strstr(e.message, "'FILE'") != NULL, "%s gave: %s", bad->text,
                  e.message);
        cr_expect_null(file);
    }
}

Test(safetensors, names_the_byte_of_a_tensor) {
    hstep_tensor_file *file = NULL;
    hstep_error e = {0};
    (void)open_text("{\"good\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},\"bad\":{}}", 0, &file, &e);
    /* 8 bytes of length, and 57 before the name */
    cr_expect(strstr(e.message, "byte 65, tensor \"bad\"") != NULL, "%s", e.message);
}

Test(safetensors, deep_nesting_is_an_error) {
    static char text[60000];
    memset(text, '[', sizeof text - 1);
    memcpy(text, "{\"a\":", 5);
    hstep_tensor_file *file = NULL;
    hstep_error e = {0};
    cr_expect_eq(open_text(text, 0, &file, &e), HSTEP_ERROR_INPUT_FILE);
}

static hstep_status open_image(const void *image, size_t size, hstep_error *error) {
    hs_test_memory_file memory = {image, size};
    const hs_files files = hs_test_memory_files(&memory);
    hstep_tensor_file *file = NULL;
    const hstep_status status = hs_tensor_file_open(&files, "FILE", &file, error);
    hstep_tensor_file_close(file);
    return status;
}

Test(safetensors, lengths_that_do_not_fit) {
    const uint64_t lengths[] = {1, UINT64_MAX, UINT64_MAX - 7, INT64_MAX, 16777217};
    unsigned char image[8];
    hstep_error e = {0};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(image, &lengths[i], sizeof image);
        cr_expect_eq(open_image(image, sizeof image, &e), HSTEP_ERROR_INPUT_FILE);
        cr_expect(strstr(e.message, "does not fit") != NULL, "%s", e.message);
        cr_expect_eq(open_image(image, 7, &e), HSTEP_ERROR_INPUT_FILE);
    }
    cr_expect_eq(open_image(image, 0, &e), HSTEP_ERROR_INPUT_FILE);
    const size_t size = (1u << 24) + 9;
    unsigned char *large = calloc(size, 1);
    const uint64_t length = size - 8;
    memcpy(large, &length, sizeof length);
    cr_expect_eq(open_image(large, size, &e), HSTEP_ERROR_INPUT_FILE);
    cr_expect(strstr(e.message, "longer than") != NULL, "%s", e.message);
    free(large);
}

Test(safetensors, files_of_other_programs) {
    hstep_tensor_file *file = NULL;
    hstep_error e = {0};
    double value = 0;
    /* Tensors out of order, an empty one, metadata of its own, and blanks at the end. */
    hs_test_expect_ok(open_text("{\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},\"__metadata__\":"
                                "{\"format\":\"pt\"},\"a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                                "\"z\":{\"dtype\":\"BOOL\",\"shape\":[0],\"data_offsets\":[8,8]}}   ",
                                12, &file, &e),
                      &e);
    cr_expect_eq(hstep_tensor_file_count(file), 3);
    cr_expect_eq(hstep_tensor_file_find(file, "a"), 0, "in the order of bytes");
    cr_expect_str_eq(hstep_tensor_file_text(file, "format"), "pt");
    cr_expect_not(hstep_tensor_file_has_checksums(file));
    cr_expect_eq(hstep_tensor_file_verify(file, &e), HSTEP_ERROR_INPUT_FILE);
    cr_expect(strstr(e.message, "no checksums") != NULL, "%s", e.message);
    hs_test_expect_ok(hstep_tensor_file_read(file, find(file, "b"), 1, 1, &value, &e), &e);
    cr_expect_eq(value, 0x1.02p-125, "0x0101 as bf16");
    hstep_tensor_file_close(file);
}

Test(safetensors, only_regular_files_are_opened, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hstep_error e = {0};
    hstep_tensor_file *file = NULL;
    cr_assert_eq(mkfifo("pipe", 0666), 0);
    const char *const paths[] = {"pipe", ".", "missing", "/dev/zero"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        cr_expect_eq(hstep_tensor_file_open(paths[i], &file, &e), HSTEP_ERROR_INPUT_FILE, "%s", paths[i]);
        cr_expect(strstr(e.message, paths[i]) != NULL, "%s", e.message);
    }
}

Test(safetensors, words_for_types) {
    hstep_storage storage = HSTEP_STORAGE_I8;
    cr_expect_eq(hstep_storage_parse("fp16", &storage), HSTEP_OK);
    cr_expect_str_eq(hstep_storage_name(storage), "F16");
    cr_expect_eq(hstep_storage_parse("bf16", &storage), HSTEP_OK);
    cr_expect_str_eq(hstep_storage_name(storage), "BF16");
    cr_expect_eq(hstep_storage_parse("BOOL", &storage), HSTEP_OK);
    cr_expect_eq(hstep_storage_parse("float", &storage), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(storage, HSTEP_STORAGE_BOOL);
    cr_expect_str_eq(hstep_storage_name((hstep_storage)99), "?");
}

/* ---- From memory ---- */

Test(safetensors, tensors_of_memory, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    const hstep_tensor_data tensors[] = {{.name = "matrix", .rank = 2, .dims = {2, 3}, .values = matrix},
                                         {.name = "none", .rank = 1, .dims = {0}},
                                         {.name = "number", .rank = 0, .values = matrix + 5}};
    const hstep_tensor_text texts[] = {{"schema", "a test"}, {"precision", "f64"}};
    hstep_error e = {0};
    hs_test_write_file("file", "was there");
    hs_test_expect_ok(hstep_tensor_file_write("file", tensors, 3, texts, 2, &e), &e);
    hstep_tensor_file *file = NULL;
    hs_test_expect_ok(hstep_tensor_file_open("file", &file, &e), &e);
    hs_test_expect_ok(hstep_tensor_file_verify(file, &e), &e);
    cr_expect_eq(hstep_tensor_file_count(file), 3);
    cr_expect_str_eq(hstep_tensor_file_text(file, "precision"), "f64");
    hstep_tensor_info info;
    const size_t index = hstep_tensor_file_find(file, "matrix");
    hs_test_expect_ok(hstep_tensor_file_tensor(file, index, &info, &e), &e);
    cr_expect(info.storage == HSTEP_STORAGE_F64 && info.rank == 2 && info.dims[0] == 2 && info.dims[1] == 3);
    double values[6];
    hs_test_expect_ok(hstep_tensor_file_read(file, index, 0, 6, values, &e), &e);
    cr_expect_eq(memcmp(values, matrix, sizeof values), 0);
    hs_test_expect_ok(hstep_tensor_file_read(file, hstep_tensor_file_find(file, "number"), 0, 1, values, &e), &e);
    cr_expect_eq(values[0], 0.1);
    hstep_tensor_file_close(file);
    cr_expect_eq(hstep_tensor_file_write("none/file", tensors, 3, texts, 2, &e), HSTEP_ERROR_OUTPUT_FILE);
    cr_expect_eq(hstep_tensor_file_write(NULL, tensors, 3, texts, 2, &e), HSTEP_ERROR_ARGUMENT);
    cr_expect_eq(hstep_tensor_file_write("file", NULL, 3, texts, 2, &e), HSTEP_ERROR_ARGUMENT);
    const hstep_tensor_data twice[] = {tensors[0], tensors[0]};
    cr_expect_eq(hstep_tensor_file_write("file", twice, 2, NULL, 0, &e), HSTEP_ERROR_ARGUMENT);
    hs_test_expect_ok(hstep_tensor_file_open("file", &file, &e), &e);
    cr_expect_eq(hstep_tensor_file_count(file), 3, "a refusal leaves what was there");
    hstep_tensor_file_close(file);
}
