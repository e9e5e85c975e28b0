/* How a file and a trainer differ, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"

static void add(hs_differences *to, const hstep_difference *difference) {
    if (to->count < to->room)
        to->items[to->count] = *difference;
    const size_t used = strlen(to->text);
    /* The first in any case, of others whole ones only: a list that ends in the middle of a number would mislead. */
    const int length = snprintf(to->text + used, sizeof to->text - used, "%s%s is %s in the file and %s here",
                                used > 0 ? "; " : "", difference->name, difference->file, difference->trainer);
    if (length < 0 || (size_t)length >= sizeof to->text - used) {
        to->cut = true;
        if (used > 0)
            to->text[used] = '\0';
    }
    to->count++;
    to->shapes += difference->shape != 0;
}

/* ---- Tensors ---- */

static void show_shape(char *text, size_t size, const char *storage, size_t rank, const size_t *dims) {
    int used = snprintf(text, size, "%s [", storage);
    for (size_t i = 0; i < rank && used > 0 && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%zu", i > 0 ? ", " : "", dims[i]);
    if (used > 0 && (size_t)used < size)
        (void)snprintf(text + used, size - (size_t)used, "]");
}

static bool same_shape(const hstep_tensor_info *info, const hstep_parameter *parameter) {
    return info->rank == parameter->rank &&
           (info->rank == 0 || memcmp(info->dims, parameter->dims, info->rank * sizeof info->dims[0]) == 0);
}

static void compare_parameter(const hstep_tensor_file *file, const char *prefix, const hstep_parameter *parameter,
                              bool f64_only, hs_differences *differences) {
    const size_t index = hs_find_prefixed(file, prefix, parameter->name);
    const hstep_tensor_info *info = index != SIZE_MAX ? &file->tensors[index] : NULL;
    const hstep_storage widest = f64_only ? HSTEP_STORAGE_F64 : HSTEP_STORAGE_BF16;
    if (info != NULL && info->storage <= widest && same_shape(info, parameter))
        return;
    hstep_difference difference = {.shape = 1, .file = "missing"};
    (void)snprintf(difference.name, sizeof difference.name, "%s%s", prefix, parameter->name);
    if (info != NULL)
        show_shape(difference.file, sizeof difference.file, hstep_storage_name(info->storage), info->rank, info->dims);
    show_shape(difference.trainer, sizeof difference.trainer, "F64", parameter->rank, parameter->dims);
    add(differences, &difference);
}

/* Weights of the file that the model lacks, and their moments. */
static void compare_strangers(const hstep_tensor_file *file, const hstep_model *model, bool checkpoint,
                              hs_differences *differences) {
    for (size_t i = 0; i < file->count; i++) {
        const hstep_tensor_info *info = &file->tensors[i];
        const char *name = NULL;
        const hstep_tensor_part part = hstep_checkpoint_part(info->name, &name);
        if (part != HSTEP_PART_WEIGHTS && (!checkpoint || part != HSTEP_PART_MOMENTS))
            continue;
        if (hstep_model_find_parameter(model, name) != SIZE_MAX)
            continue;
        hstep_difference difference = {.shape = 1, .trainer = "missing"};
        (void)snprintf(difference.name, sizeof difference.name, "%s", info->name);
        show_shape(difference.file, sizeof difference.file, hstep_storage_name(info->storage), info->rank, info->dims);
        add(differences, &difference);
    }
}

void hs_compare_tensors(const hstep_tensor_file *file, const hstep_model *model, bool checkpoint,
                        hs_differences *differences) {
    static const char *const prefixes[] = {"", HS_PREFIX_FIRST, HS_PREFIX_SECOND};
    for (size_t g = 0; g < (checkpoint ? 3 : 1); g++)
        for (size_t i = 0; i < model->parameter_count; i++) {
            hstep_parameter parameter;
            if (hstep_model_parameter(model, i, &parameter, NULL) == HSTEP_OK)
                compare_parameter(file, prefixes[g], &parameter, checkpoint, differences);
        }
    compare_strangers(file, model, checkpoint, differences);
}

/* ---- Settings ---- */

static void show_number(const hs_number_row *row, uint64_t bits, char *text, size_t size) {
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    if (row->kind == HS_NUMBER_F64)
        (void)snprintf(text, size, "%.17g", value);
    else if (strcmp(row->tensor, HS_PREFIX_SETTINGS "schedule") == 0)
        (void)snprintf(text, size, "%s", bits == HSTEP_SCHEDULE_COSINE ? "cosine" : "constant");
    else
        (void)snprintf(text, size, "%" PRIu64, bits);
}

/* The first scale is history once a scale is stored; a constant rate has no end. */
static bool decides(const char *setting, const hstep_checkpoint_state *file, const hstep_checkpoint_state *trainer) {
    const bool cosine =
        file->config.schedule.kind == HSTEP_SCHEDULE_COSINE || trainer->config.schedule.kind == HSTEP_SCHEDULE_COSINE;
    if (strcmp(setting, "loss_scale") == 0)
        return false;
    return cosine || (strcmp(setting, "steps") != 0 && strcmp(setting, "min_learning_rate") != 0);
}

void hs_compare_settings(const hstep_checkpoint_state *file, const hstep_checkpoint_state *trainer,
                         hs_differences *differences) {
    for (size_t i = 0; i < hs_number_count; i++) {
        const hs_number_row *row = &hs_number_rows[i];
        const char *name = NULL;
        const uint64_t theirs = hs_number_bits(row, file), ours = hs_number_bits(row, trainer);
        if (hstep_checkpoint_part(row->tensor, &name) != HSTEP_PART_SETTINGS || theirs == ours ||
            !decides(name, file, trainer))
            continue;
        hstep_difference difference = {.shape = 0};
        (void)snprintf(difference.name, sizeof difference.name, "%s", name);
        show_number(row, theirs, difference.file, sizeof difference.file);
        show_number(row, ours, difference.trainer, sizeof difference.trainer);
        add(differences, &difference);
    }
}

hstep_status hstep_checkpoint_differences(const hstep_tensor_file *file, const hstep_trainer *trainer,
                                          hstep_difference *differences, size_t room, size_t *count,
                                          hstep_error *error) {
    HS_RETURN_IF(file == NULL || trainer == NULL || count == NULL || (differences == NULL && room > 0), error,
                 HSTEP_ERROR_ARGUMENT, "hstep_checkpoint_differences needs a file, a trainer and places");
    hstep_checkpoint_state stored;
    HS_FORWARD(hstep_checkpoint_read_state(file, &stored, error));
    const hstep_checkpoint_state ours = hs_state_of(trainer);
    hs_differences found = {.items = differences, .room = room};
    hs_compare_tensors(file, trainer->model, true, &found);
    hs_compare_settings(&stored, &ours, &found);
    *count = found.count;
    return HSTEP_OK;
}
