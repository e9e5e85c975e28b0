/* Loading: everything is checked first, in all its bytes; then it is read once more, into the trainer or model. */
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "engine/files/path.h"

static hstep_status refuse_differences(const hstep_tensor_file *file, const hs_differences *found, hstep_error *error) {
    if (found->shapes > 0)
        return hs_fail(error, HSTEP_ERROR_SHAPE, "'%s' is of another model: %s%s", hs_show_path(file->path).text,
                       found->text, found->cut ? " ..." : "");
    return hs_fail(error, HSTEP_ERROR_ARGUMENT,
                   "'%s' is of a run with other settings: %s%s; go on with its settings, or ask for the change",
                   hs_show_path(file->path).text, found->text, found->cut ? " ..." : "");
}

/* ---- A trainer ---- */

static hstep_status check(const hstep_tensor_file *file, const hstep_trainer *trainer, bool other_settings,
                          hstep_checkpoint_state *state, hstep_error *error) {
    HS_FORWARD(hstep_checkpoint_read_state(file, state, error));
    const hstep_checkpoint_state ours = hs_state_of(trainer);
    hs_differences found = {0};
    hs_compare_tensors(file, trainer->model, true, &found);
    if (!other_settings)
        hs_compare_settings(state, &ours, &found);
    if (found.count > 0)
        return refuse_differences(file, &found, error);
    return hstep_tensor_file_verify(file, error);
}

static hstep_status read_trainer(hstep_trainer *trainer, const hstep_tensor_file *file, void *chunk,
                                 hstep_error *error) {
    const hstep_model *model = trainer->model;
    for (size_t i = 0; i < model->parameter_count; i++) {
        HS_FORWARD(hs_stream_in(model, i, model->parameters[i], chunk, file, "", error));
        HS_FORWARD(hs_stream_in(model, i, trainer->first_moments[i], chunk, file, HS_PREFIX_FIRST, error));
        HS_FORWARD(hs_stream_in(model, i, trainer->second_moments[i], chunk, file, HS_PREFIX_SECOND, error));
    }
    return hs_trainer_clear_gradients(trainer, error);
}

static double into_bounds(double scale, const hs_scaler *bounds) {
    if (scale < bounds->minimum)
        return bounds->minimum;
    return scale > bounds->maximum ? bounds->maximum : scale;
}

/* The settings stay the trainer's; a count that its growth interval has no room for starts anew. */
static void take_state(hstep_trainer *trainer, const hstep_checkpoint_state *state) {
    trainer->adamw = (hs_adamw_state){state->beta1_power, state->beta2_power, state->optimizer_step};
    trainer->attempts = state->attempts;
    trainer->scaler.scale = into_bounds(state->loss_scale, &trainer->scaler);
    trainer->scaler.finite_updates =
        state->finite_updates < trainer->scaler.growth_interval ? state->finite_updates : 0;
}

static void touch_all(hstep_model *model) {
    for (size_t i = 0; i < model->parameter_count; i++)
        hs_model_touch(model, i);
}

hstep_status hstep_checkpoint_restore(hstep_trainer *trainer, const hstep_tensor_file *file, int other_settings,
                                      hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || file == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_checkpoint_restore needs a trainer and a file");
    hstep_checkpoint_state state;
    HS_FORWARD(check(file, trainer, other_settings != 0, &state, error));
    void *chunk = malloc(HS_CHUNK);
    if (chunk == NULL)
        return hs_fail_memory(error, "a checkpoint");
    trainer->half_loaded = trainer->model->half_loaded = true;
    const hstep_status status = read_trainer(trainer, file, chunk, error);
    free(chunk);
    touch_all(trainer->model);
    HS_FORWARD(status);
    take_state(trainer, &state);
    trainer->half_loaded = trainer->model->half_loaded = false;
    return HSTEP_OK;
}

hstep_status hs_checkpoint_load(const hs_files *files, hstep_trainer *trainer, const char *path, hstep_error *error) {
    hstep_tensor_file *file = NULL;
    HS_FORWARD(hs_tensor_file_open(files, path, &file, error));
    const hstep_status status = hstep_checkpoint_restore(trainer, file, 0, error);
    hstep_tensor_file_close(file);
    return status;
}

hstep_status hstep_checkpoint_load(hstep_trainer *trainer, const char *path, hstep_error *error) {
    return hs_checkpoint_load(&hs_files_posix, trainer, path, error);
}

/* ---- Weights alone ---- */

static hstep_status read_weights(hstep_model *model, const hstep_tensor_file *file, void *chunk, hstep_error *error) {
    for (size_t i = 0; i < model->parameter_count; i++)
        HS_FORWARD(hs_stream_in(model, i, model->parameters[i], chunk, file, "", error));
    return HSTEP_OK;
}

static hstep_status load_weights(hstep_model *model, const hstep_tensor_file *file, hstep_error *error) {
    hs_differences found = {0};
    hs_compare_tensors(file, model, false, &found);
    if (found.count > 0)
        return refuse_differences(file, &found, error);
    if (file->checksums)
        HS_FORWARD(hstep_tensor_file_verify(file, error));
    void *chunk = malloc(HS_CHUNK);
    if (chunk == NULL)
        return hs_fail_memory(error, "weights");
    model->half_loaded = true;
    const hstep_status status = read_weights(model, file, chunk, error);
    free(chunk);
    touch_all(model);
    HS_FORWARD(status);
    model->half_loaded = false;
    return HSTEP_OK;
}

hstep_status hs_checkpoint_load_weights(const hs_files *files, hstep_model *model, const char *path,
                                        hstep_error *error) {
    HS_RETURN_IF(model == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_checkpoint_load_weights needs a model");
    hstep_tensor_file *file = NULL;
    HS_FORWARD(hs_tensor_file_open(files, path, &file, error));
    const hstep_status status = load_weights(model, file, error);
    hstep_tensor_file_close(file);
    return status;
}

hstep_status hstep_checkpoint_load_weights(hstep_model *model, const char *path, hstep_error *error) {
    return hs_checkpoint_load_weights(&hs_files_posix, model, path, error);
}

/* ---- Sections ---- */

/* By way of a place of its own, so that the caller's stays as it is where the bytes are damaged. */
static hstep_status read_section(const hstep_tensor_file *file, size_t index, void *data, hstep_error *error) {
    const hstep_tensor_info *info = &file->tensors[index];
    const size_t bytes = (size_t)info->bytes;
    unsigned char *read = malloc(bytes + 1);
    if (read == NULL)
        return hs_fail_memory(error, "a section of a checkpoint");
    hstep_status status = hs_tensor_file_read_bytes(file, info->offset, read, bytes, error);
    if (status == HSTEP_OK)
        status = hs_tensor_file_check_bytes(file, index, read, error);
    if (status == HSTEP_OK)
        memcpy(data, read, bytes);
    free(read);
    return status;
}

hstep_status hstep_checkpoint_section(const hstep_tensor_file *file, const char *name, void *data, size_t *size,
                                      hstep_error *error) {
    HS_RETURN_IF(file == NULL || name == NULL || size == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_checkpoint_section needs a file, a name and a size");
    const size_t index = hs_find_prefixed(file, HS_PREFIX_SECTION, name);
    HS_RETURN_IF(index == SIZE_MAX, error, HSTEP_ERROR_ARGUMENT, "'%s' has no section \"%.64s\"",
                 hs_show_path(file->path).text, name);
    const hstep_tensor_info *info = &file->tensors[index];
    HS_RETURN_IF(info->storage != HSTEP_STORAGE_U8 || info->bytes > SIZE_MAX, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s': section \"%.64s\" has type %s, not U8; use another file", hs_show_path(file->path).text, name,
                 hstep_storage_name(info->storage));
    const size_t bytes = (size_t)info->bytes;
    if (data != NULL) {
        HS_RETURN_IF(*size < bytes, error, HSTEP_ERROR_ARGUMENT,
                     "section \"%.64s\" takes %zu bytes; there is room for %zu", name, bytes, *size);
        HS_FORWARD(read_section(file, index, data, error));
    }
    *size = bytes;
    return HSTEP_OK;
}
