/* Any bytes as a data file of any token type, and as a position in data: read, or refused with a reason. */
#undef NDEBUG /* assertions judge here, in every build */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/dataset.h"
#include "fuzz/target.h"

/* The first byte of an input says how the others are taken. */
enum { TYPE = 3, NAMED_BIN = 4, POSITION = 8 };

static uint32_t token_at(const hs_file *file, size_t i) {
    uint32_t token = 0;
    const size_t width = hs_token_width(file->known.type);
    memcpy(&token, file->bytes + file->start + i * width, width);
    return token;
}

/* What a file that was taken must keep: its tokens fill it, the pass saw the largest, and all are read as they are. */
static void check_tokens(const hstep_dataset *dataset, size_t limit) {
    const hs_file *file = &dataset->files[0];
    const size_t count = file->known.tokens;
    assert(count > 0 && file->start + count * hs_token_width(file->known.type) == file->size);
    int32_t *tokens = malloc(count * sizeof *tokens);
    if (tokens == NULL)
        return;
    assert(hstep_dataset_read(dataset, 0, count, tokens, NULL) == HSTEP_OK);
    const int32_t shift = file->known.type == HSTEP_TOKENS_BYTES ? HSTEP_TOKEN_FIRST_BYTE : 0;
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t token = token_at(file, i);
        assert(token < limit && tokens[i] == (int32_t)token + shift);
        largest = token > largest ? token : largest;
    }
    assert(largest == file->known.largest);
    free(tokens);
}

/* Windows of some length, as training and evaluation draw them. */
static void draw(hstep_dataset *dataset, size_t length, uint64_t seed) {
    enum { MOST = 16, ROWS = 4 };
    int32_t tokens[MOST * ROWS], targets[MOST * ROWS];
    assert(hstep_dataset_hold_out(dataset, 0.25, NULL) == HSTEP_OK);
    if (hstep_dataset_check(dataset, length, NULL) != HSTEP_OK)
        return;
    assert(hstep_dataset_batch(dataset, seed, seed, ROWS, length, tokens, targets, NULL) == HSTEP_OK);
    for (size_t i = 0; i < ROWS * length; i++)
        assert(tokens[i] >= 0 && (size_t)tokens[i] < dataset->vocabulary && targets[i] >= 0);
    const size_t windows = hstep_dataset_evaluation_windows(dataset, length, ROWS);
    assert(hstep_dataset_evaluation_batch(dataset, length, ROWS, 0, windows, tokens, targets, NULL) == HSTEP_OK);
}

static hstep_status take(hstep_dataset *dataset, hstep_token_type wanted, hstep_error *error) {
    hs_file *file = &dataset->files[0];
    const hstep_status status = hs_file_recognize(file, wanted, error);
    if (status != HSTEP_OK)
        return status;
    const size_t limit = file->known.type == HSTEP_TOKENS_BYTES ? HSTEP_BYTE_VOCABULARY
                         : file->vocabulary != 0                ? file->vocabulary
                                                                : 50000;
    return hs_dataset_examine(dataset, limit, error);
}

static void read_shard(const uint8_t *data, size_t size, uint8_t how) {
    hstep_dataset *dataset = NULL;
    hstep_error error = {0};
    if (hs_dataset_allocate(1, &dataset, &error) != HSTEP_OK)
        return;
    hs_file *file = &dataset->files[0];
    dataset->file_count = 1;
    file->known.name = strdup(how & NAMED_BIN ? "FILE.bin" : "FILE");
    file->bytes = malloc(size > 0 ? size : 1);
    file->size = size;
    if (file->known.name != NULL && file->bytes != NULL) {
        memcpy(file->bytes, data, size);
        const hstep_status status = take(dataset, (hstep_token_type)(how & TYPE), &error);
        assert(status == HSTEP_OK || (status == HSTEP_ERROR_INPUT_FILE && strstr(error.message, "'FILE") != NULL &&
                                      strstr(error.message, "byte offset") != NULL));
        if (status == HSTEP_OK) {
            check_tokens(dataset, dataset->vocabulary);
            draw(dataset, 1 + size % 16, size);
        }
    }
    hstep_dataset_destroy(dataset);
}

static void read_position(const uint8_t *data, size_t size) {
    hstep_dataset *dataset = NULL;
    hstep_data_position position;
    hstep_error error = {0};
    if (hstep_dataset_from_bytes("some text", 9, &dataset, &error) != HSTEP_OK)
        return;
    const hstep_status status = hstep_dataset_restore_position(dataset, (const char *)data, size, &position, &error);
    assert((status == HSTEP_OK && position.length > 0) || status == HSTEP_ERROR_INPUT_FILE);
    hstep_dataset_destroy(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] & POSITION)
        read_position(data + 1, size - 1);
    else
        read_shard(data + 1, size - 1, data[0]);
    return 0;
}

/* ---- Examples ---- */

static size_t write_shard(uint32_t magic, uint32_t version, uint32_t count, size_t width, uint8_t *data) {
    const uint32_t header[] = {magic, version, count};
    const size_t size = 1024 + count * width;
    memset(data, 0, 1 + size);
    memcpy(data + 1, header, sizeof header);
    for (size_t i = 0; i < count; i++)
        data[1 + 1024 + i * width] = (uint8_t)i;
    return 1 + size;
}

static size_t write_bytes(uint8_t how, const char *text, uint8_t *data) {
    data[0] = how;
    memcpy(data + 1, text, strlen(text));
    return 1 + strlen(text);
}

static size_t write_position(uint8_t *data, size_t room) {
    const hstep_data_position position = {.seed = 5, .length = 3, .windows = 77};
    hstep_dataset *dataset = NULL;
    size_t size = room - 1;
    data[0] = POSITION;
    if (hstep_dataset_from_bytes("some text", 9, &dataset, NULL) != HSTEP_OK ||
        hstep_dataset_save_position(dataset, &position, (char *)data + 1, &size, NULL) != HSTEP_OK)
        size = 0;
    hstep_dataset_destroy(dataset);
    return 1 + size;
}

size_t hs_fuzz_example(size_t index, uint8_t *data, size_t room) {
    if (room < 4096)
        return 0;
    switch (index) {
    case 0:
        return write_shard(20240520, 1, 50, 2, data);
    case 1:
        return write_shard(20240801, 7, 20, 4, data);
    case 2:
        return write_bytes(HSTEP_TOKENS_AUTO | NAMED_BIN, "some text, or raw tokens", data);
    case 3:
        return write_bytes(HSTEP_TOKENS_UINT16, "some text, or raw tokens", data);
    case 4:
        return write_bytes(HSTEP_TOKENS_UINT32, "so\0\0me\0\0", data);
    case 5:
        return write_position(data, room);
    default:
        return 0;
    }
}
