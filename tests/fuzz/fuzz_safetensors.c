/* Any bytes as a file of tensors, and as a checkpoint: read, or refused with a reason. */
#undef NDEBUG /* assertions judge here, in every build */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "engine/checkpoint/checkpoint.h"
#include "fuzz/target.h"
#include "support/memory_file.h"

/* What every file that opens must keep: the tensors fill it to its end, in order. */
static void check_places(const hstep_tensor_file *file) {
    for (size_t i = 0; i < hstep_tensor_file_count(file); i++) {
        hstep_tensor_info info;
        assert(hstep_tensor_file_tensor(file, i, &info, NULL) == HSTEP_OK);
        assert(info.offset >= 8 && info.offset + info.bytes <= hstep_tensor_file_size(file));
        assert(i == 0 || info.offset == file->tensors[i - 1].offset + file->tensors[i - 1].bytes);
        assert(info.bytes == info.elements * hs_storage_size(info.storage));
        assert(strcmp(file->tensors[hstep_tensor_file_find(file, info.name)].name, info.name) == 0);
    }
}

static void read_all(const hstep_tensor_file *file) {
    double values[16];
    char bytes[64];
    for (size_t i = 0; i < hstep_tensor_file_count(file); i++) {
        const hstep_tensor_info *info = &file->tensors[i];
        const char *name = NULL;
        size_t size = sizeof bytes;
        const size_t count = info->elements < 16 ? (size_t)info->elements : 16;
        const hstep_status status = hstep_tensor_file_read(file, i, info->elements - count, count, values, NULL);
        assert(status == HSTEP_OK || info->storage > HSTEP_STORAGE_BF16);
        if (hstep_checkpoint_part(info->name, &name) == HSTEP_PART_SECTION)
            (void)hstep_checkpoint_section(file, name, bytes, &size, NULL);
    }
}

static void open_and_read(const uint8_t *data, size_t size) {
    hs_test_memory_file memory = {data, size};
    const hs_files files = hs_test_memory_files(&memory);
    hstep_tensor_file *file = NULL;
    hstep_error error = {0};
    hstep_checkpoint_state state;
    const hstep_status status = hs_tensor_file_open(&files, "FILE", &file, &error);
    assert(status == HSTEP_OK || (status == HSTEP_ERROR_INPUT_FILE && strstr(error.message, "'FILE'") != NULL));
    if (status != HSTEP_OK)
        return;
    check_places(file);
    read_all(file);
    (void)hstep_tensor_file_verify(file, &error);
    if (hstep_checkpoint_read_state(file, &state, &error) == HSTEP_OK)
        assert(state.loss_scale >= 1 && state.beta1_power <= 1 && state.attempts >= state.optimizer_step);
    hstep_tensor_file_close(file);
}

/* Gives a changed header its checksum, which else would keep the fuzzer from everything behind it. */
static void repair(uint8_t *data, size_t size) {
    static const char start[] = HS_CHECKSUM_START;
    uint64_t length = 0;
    if (size >= sizeof length)
        memcpy(&length, data, sizeof length);
    const size_t place = HS_LENGTH_BYTES + sizeof start - 1;
    if (size < place + HS_CHECKSUM_DIGITS || length > size - HS_LENGTH_BYTES || HS_LENGTH_BYTES + length < place + 16)
        return;
    memcpy(data + HS_LENGTH_BYTES, start, sizeof start - 1);
    memset(data + place, '0', HS_CHECKSUM_DIGITS);
    const hs_checksum found = hs_checksum_text(XXH3_64bits(data, HS_LENGTH_BYTES + (size_t)length));
    memcpy(data + place, found.digits, HS_CHECKSUM_DIGITS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    open_and_read(data, size);
    uint8_t *repaired = malloc(size + 1);
    if (repaired == NULL)
        return 0;
    memcpy(repaired, data, size);
    repair(repaired, size);
    open_and_read(repaired, size);
    free(repaired);
    return 0;
}

/* ---- Examples ---- */

/* A file that another program could have written. */
static size_t write_foreign(const char *header, size_t bytes, uint8_t *data, size_t room) {
    const uint64_t length = strlen(header);
    const size_t size = 8 + (size_t)length + bytes;
    if (size > room)
        return 0;
    memset(data, 7, size);
    memcpy(data, &length, sizeof length);
    memcpy(data + 8, header, (size_t)length);
    return size;
}

/* The numbers of a checkpoint and a section, without a model. */
static size_t write_checkpoint(uint8_t *data, size_t room) {
    static const size_t dims[] = {2, 2}, three = 3;
    const hstep_checkpoint_state state = {.optimizer_step = 3,
                                          .attempts = 4,
                                          .finite_updates = 1,
                                          .loss_scale = 65536,
                                          .beta1_power = 0.9,
                                          .beta2_power = 0.999,
                                          .config = {.replicas = 1, .micro_batches = 2}};
    hs_tensor_writer *writer = NULL;
    hs_test_memory_sink sink = {.image = data, .room = room};
    const hs_files files = hs_test_memory_sinks(&sink);
    bool made = hs_tensor_writer_create(&writer, NULL) == HSTEP_OK &&
                hs_tensor_writer_text(writer, "schema", HSTEP_CHECKPOINT_SCHEMA, NULL) == HSTEP_OK &&
                hs_tensor_writer_declare(writer, "w", HSTEP_STORAGE_F64, 2, dims, NULL) == HSTEP_OK;
    for (size_t i = 0; i < hs_number_count && made; i++)
        made = hs_tensor_writer_declare(writer, hs_number_rows[i].tensor, hs_number_storage(&hs_number_rows[i]), 0,
                                        NULL, NULL) == HSTEP_OK;
    made = made && hs_tensor_writer_declare(writer, "section.random", HSTEP_STORAGE_U8, 1, &three, NULL) == HSTEP_OK &&
           hs_tensor_writer_begin(writer, &files, "FILE", NULL) == HSTEP_OK &&
           hs_tensor_writer_write(writer, (double[]){1, -2, 0.5, 3}, 32, NULL) == HSTEP_OK;
    for (size_t i = 0; i < hs_number_count && made; i++) {
        const uint64_t bits = hs_number_bits(&hs_number_rows[i], &state);
        made = hs_tensor_writer_write(writer, &bits, sizeof bits, NULL) == HSTEP_OK;
    }
    made = made && hs_tensor_writer_write(writer, "abc", 3, NULL) == HSTEP_OK &&
           hs_tensor_writer_commit(writer, NULL) == HSTEP_OK;
    hs_tensor_writer_destroy(writer);
    return made ? sink.size : 0;
}

size_t hs_fuzz_example(size_t index, uint8_t *data, size_t room) {
    switch (index) {
    case 0:
        return write_checkpoint(data, room);
    case 1:
        return write_foreign("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},\"__metadata__\":"
                             "{\"format\":\"pt\"},\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[24,26]}}  ",
                             26, data, room);
    case 2:
        return write_foreign("{\"\\u00e4\\\"\":{\"dtype\":\"U8\",\"shape\":[0,9],\"data_offsets\":[0,0]}}", 0, data,
                             room);
    case 3:
        return write_foreign("{}", 0, data, room);
    default:
        return 0;
    }
}
