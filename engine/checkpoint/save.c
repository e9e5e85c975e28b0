/* Saving: declare everything, then stream it in the same order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "engine/files/path.h"

/* Everything that a checkpoint is made of. */
typedef struct saving {
    const hstep_trainer *trainer;
    hstep_checkpoint_state state;
    hstep_checkpoint_extras extras;
    hs_tensor_writer *writer;
    void *chunk;
} saving;

/* The three tensors that every parameter has. */
typedef struct group {
    const char *prefix;
    hs_buffer *const *buffers;
} group;

enum { GROUPS = 3 };

static void list_groups(const hstep_trainer *trainer, group groups[GROUPS]) {
    groups[0] = (group){"", trainer->model->parameters};
    groups[1] = (group){HS_PREFIX_FIRST, trainer->first_moments};
    groups[2] = (group){HS_PREFIX_SECOND, trainer->second_moments};
}

/* ---- Declaring ---- */

static hstep_status declare(hs_tensor_writer *writer, const char *prefix, const char *name, hstep_storage storage,
                            size_t rank, const size_t *dims, hstep_error *error) {
    char *tensor = hs_format("%s%s", prefix, name);
    if (tensor == NULL)
        return hs_fail_memory(error, "a checkpoint");
    const hstep_status status = hs_tensor_writer_declare(writer, tensor, storage, rank, dims, error);
    free(tensor);
    return status;
}

static hstep_status declare_parameters(const saving *of, const char *prefix, hstep_error *error) {
    const hstep_model *model = of->trainer->model;
    for (size_t i = 0; i < model->parameter_count; i++) {
        hstep_parameter parameter;
        HS_FORWARD(hstep_model_parameter(model, i, &parameter, error));
        HS_RETURN_IF(hstep_checkpoint_part(parameter.name, NULL) != HSTEP_PART_WEIGHTS ||
                         strcmp(parameter.name, "__metadata__") == 0,
                     error, HSTEP_ERROR_ARGUMENT,
                     "parameter \"%.80s\" cannot be saved: checkpoints use names that begin like this for their own "
                     "purposes; give it another name",
                     parameter.name);
        HS_FORWARD(
            declare(of->writer, prefix, parameter.name, HSTEP_STORAGE_F64, parameter.rank, parameter.dims, error));
    }
    return HSTEP_OK;
}

/* Sections come last: the others keep their numbers at multiples of 8. */
static hstep_status declare_all(const saving *of, hstep_error *error) {
    group groups[GROUPS];
    list_groups(of->trainer, groups);
    HS_FORWARD(hs_tensor_writer_text(of->writer, "schema", HSTEP_CHECKPOINT_SCHEMA, error));
    HS_FORWARD(hs_tensor_writer_text(of->writer, "version", hstep_version(), error));
    for (size_t g = 0; g < GROUPS; g++)
        HS_FORWARD(declare_parameters(of, groups[g].prefix, error));
    for (size_t i = 0; i < hs_number_count; i++)
        HS_FORWARD(hs_tensor_writer_declare(of->writer, hs_number_rows[i].tensor, hs_number_storage(&hs_number_rows[i]),
                                            0, NULL, error));
    for (size_t i = 0; i < of->extras.section_count; i++) {
        const hstep_section *section = &of->extras.sections[i];
        HS_RETURN_IF(section->name == NULL || (section->data == NULL && section->size > 0), error, HSTEP_ERROR_ARGUMENT,
                     "section %zu of %zu has no name or no bytes", i + 1, of->extras.section_count);
        HS_FORWARD(declare(of->writer, HS_PREFIX_SECTION, section->name, HSTEP_STORAGE_U8, 1, &section->size, error));
    }
    return HSTEP_OK;
}

/* ---- Writing ---- */

static hstep_status stream_all(const saving *of, hstep_error *error) {
    group groups[GROUPS];
    list_groups(of->trainer, groups);
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < of->trainer->model->parameter_count; i++)
            HS_FORWARD(hs_stream_out(of->trainer->model, i, groups[g].buffers[i], of->chunk, of->writer, error));
    for (size_t i = 0; i < hs_number_count; i++) {
        const uint64_t bits = hs_number_bits(&hs_number_rows[i], &of->state);
        HS_FORWARD(hs_tensor_writer_write(of->writer, &bits, sizeof bits, error));
    }
    for (size_t i = 0; i < of->extras.section_count; i++)
        HS_FORWARD(hs_tensor_writer_write(of->writer, of->extras.sections[i].data, of->extras.sections[i].size, error));
    return HSTEP_OK;
}

static hstep_status save(saving *of, const hs_files *files, const char *path, hstep_error *error) {
    of->chunk = malloc(HS_CHUNK);
    if (of->chunk == NULL)
        return hs_fail_memory(error, "a checkpoint");
    HS_FORWARD(hs_tensor_writer_create(&of->writer, error));
    HS_FORWARD(declare_all(of, error));
    HS_FORWARD(hs_tensor_writer_begin(of->writer, files, path, error));
    HS_FORWARD(stream_all(of, error));
    return hs_tensor_writer_commit(of->writer, error);
}

hstep_status hs_checkpoint_save(const hs_files *files, hstep_trainer *trainer, const char *path,
                                const hstep_checkpoint_extras *extras, hstep_error *error) {
    HS_RETURN_IF(trainer == NULL || path == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_checkpoint_save needs a trainer and a path");
    HS_RETURN_IF(trainer->gradient_state != HS_GRADIENTS_CLEAR, error, HSTEP_ERROR_DIRTY_GRADIENT,
                 "a checkpoint stands between updates, and gradients are there; commit or clear them first");
    HS_FORWARD(hs_trainer_check_whole(trainer, error));
    saving of = {.trainer = trainer, .state = hs_state_of(trainer), .extras = {.held_out_loss = NAN}};
    if (extras != NULL)
        of.extras = *extras;
    of.state.held_out_loss = of.extras.held_out_loss;
    const hstep_status status = save(&of, files, path, error);
    hs_tensor_writer_destroy(of.writer);
    free(of.chunk);
    return status;
}

hstep_status hstep_checkpoint_save(hstep_trainer *trainer, const char *path, const hstep_checkpoint_extras *extras,
                                   hstep_error *error) {
    return hs_checkpoint_save(&hs_files_posix, trainer, path, extras, error);
}
