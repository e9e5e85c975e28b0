/* Weights alone, in the type that another tool wants. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "engine/files/path.h"
#include "precision/format.h"

enum { PIECE = HS_CHUNK / sizeof(double) };

typedef struct exporting {
    const hstep_tensor_file *from;
    bool checkpoint;
    hstep_storage storage;
    hs_tensor_writer *writer;
    double *values;        /* PIECE of them */
    unsigned char *stored; /* the same, rounded */
    hstep_export_report report;
} exporting;

/* ---- Rounding ---- */

/* Rounds once from f64 and stores; returns the number that was stored. */
static double store(hstep_storage storage, double value, unsigned char *to) {
    const float single = (float)value;
    uint16_t half = 0;
    switch (storage) {
    case HSTEP_STORAGE_F32:
        memcpy(to, &single, sizeof single);
        return (double)single;
    case HSTEP_STORAGE_F16:
    case HSTEP_STORAGE_BF16:
        half = hs_encode(storage == HSTEP_STORAGE_F16 ? HSTEP_FP16 : HSTEP_BF16, value);
        memcpy(to, &half, sizeof half);
        return hs_decode(storage == HSTEP_STORAGE_F16 ? HSTEP_FP16 : HSTEP_BF16, half);
    default:
        memcpy(to, &value, sizeof value);
        return value;
    }
}

static void note_overflow(hstep_export_report *report, const hstep_tensor_info *info, uint64_t index) {
    if (report->overflowed++ > 0)
        return;
    (void)snprintf(report->first_overflow, sizeof report->first_overflow, "%s", info->name);
    report->first_index = index;
}

static void round_piece(exporting *of, const hstep_tensor_info *info, uint64_t first, size_t count) {
    const size_t size = hs_storage_size(of->storage);
    for (size_t i = 0; i < count; i++) {
        const double value = of->values[i], stored = store(of->storage, value, of->stored + i * size);
        if (!isfinite(value))
            of->report.nonfinite++;
        else if (!isfinite(stored))
            note_overflow(&of->report, info, first + i);
        else
            of->report.underflowed += value != 0 && stored == 0;
    }
    of->report.elements += count;
}

/* ---- The file ---- */

static bool is_wanted(const exporting *of, const hstep_tensor_info *info) {
    return !of->checkpoint || hstep_checkpoint_part(info->name, NULL) == HSTEP_PART_WEIGHTS;
}

static hstep_status declare(exporting *of, hstep_error *error) {
    HS_FORWARD(hs_tensor_writer_text(of->writer, "schema", HSTEP_WEIGHTS_SCHEMA, error));
    HS_FORWARD(hs_tensor_writer_text(of->writer, "version", hstep_version(), error));
    if (of->checkpoint) {
        hstep_checkpoint_state state;
        char step[24];
        HS_FORWARD(hstep_checkpoint_read_state(of->from, &state, error));
        (void)snprintf(step, sizeof step, "%" PRIu64, state.optimizer_step);
        HS_FORWARD(hs_tensor_writer_text(of->writer, "optimizer_step", step, error));
    }
    for (size_t i = 0; i < of->from->count; i++) {
        const hstep_tensor_info *info = &of->from->tensors[i];
        if (!is_wanted(of, info))
            continue;
        HS_RETURN_IF(info->storage > HSTEP_STORAGE_BF16, error, HSTEP_ERROR_INPUT_FILE,
                     "'%s': tensor \"%.64s\" has type %s, no floating-point numbers; export a file of weights",
                     hs_show_path(of->from->path).text, info->name, hstep_storage_name(info->storage));
        HS_FORWARD(hs_tensor_writer_declare(of->writer, info->name, of->storage, info->rank, info->dims, error));
        of->report.tensors++;
    }
    return HSTEP_OK;
}

static hstep_status stream(exporting *of, hstep_error *error) {
    for (size_t i = 0; i < of->from->count; i++) {
        const hstep_tensor_info *info = &of->from->tensors[i];
        for (uint64_t done = 0; is_wanted(of, info) && done < info->elements;) {
            const size_t count = info->elements - done < PIECE ? (size_t)(info->elements - done) : PIECE;
            HS_FORWARD(hstep_tensor_file_read(of->from, i, done, count, of->values, error));
            round_piece(of, info, done, count);
            HS_FORWARD(hs_tensor_writer_write(of->writer, of->stored, count * hs_storage_size(of->storage), error));
            done += count;
        }
    }
    return HSTEP_OK;
}

static hstep_status export_weights(exporting *of, const hs_files *files, const char *to, hstep_error *error) {
    if (of->from->checksums)
        HS_FORWARD(hstep_tensor_file_verify(of->from, error));
    of->values = malloc(HS_CHUNK);
    of->stored = malloc(HS_CHUNK);
    if (of->values == NULL || of->stored == NULL)
        return hs_fail_memory(error, "an export");
    HS_FORWARD(hs_tensor_writer_create(&of->writer, error));
    HS_FORWARD(declare(of, error));
    HS_FORWARD(hs_tensor_writer_begin(of->writer, files, to, error));
    HS_FORWARD(stream(of, error));
    return hs_tensor_writer_commit(of->writer, error);
}

hstep_status hs_checkpoint_export(const hs_files *files, const char *from, const char *to, hstep_storage storage,
                                  hstep_export_report *report, hstep_error *error) {
    HS_RETURN_IF(from == NULL || to == NULL, error, HSTEP_ERROR_ARGUMENT, "an export needs two paths");
    HS_RETURN_IF((unsigned)storage > HSTEP_STORAGE_BF16, error, HSTEP_ERROR_ARGUMENT,
                 "weights are exported as F64, F32, F16 or BF16, not as %s", hstep_storage_name(storage));
    hstep_tensor_file *file = NULL;
    HS_FORWARD(hs_tensor_file_open(files, from, &file, error));
    const char *schema = hstep_tensor_file_text(file, "schema");
    exporting of = {
        .from = file, .checkpoint = schema != NULL && strcmp(schema, HSTEP_CHECKPOINT_SCHEMA) == 0, .storage = storage};
    const hstep_status status = export_weights(&of, files, to, error);
    hs_tensor_writer_destroy(of.writer);
    free(of.values);
    free(of.stored);
    hstep_tensor_file_close(file);
    if (status == HSTEP_OK && report != NULL)
        *report = of.report;
    return status;
}

hstep_status hstep_checkpoint_export(const char *from, const char *to, hstep_storage storage,
                                     hstep_export_report *report, hstep_error *error) {
    return hs_checkpoint_export(&hs_files_posix, from, to, storage, report, error);
}
