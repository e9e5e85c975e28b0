#include "trainer/model/load.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/checkpoints/stored.h"
#include "trainer/exit.h"
#include "trainer/model/build.h"
#include "trainer/options/places.h"
#include "trainer/report.h"

static int refuse(const char *path, const char *why) {
    hs_report("checkpoint '%s': %s", path, why);
    return HS_EXIT_INPUT;
}

int hs_model_find(const char *path, char *file, size_t size) {
    struct stat status;
    hstep_found_checkpoint found = {0};
    hstep_skipped_checkpoint skipped = {0};
    hstep_error error = {0};
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return (size_t)snprintf(file, size, "%s", path) < size ? HS_EXIT_DONE : refuse(path, "its path is too long");
    if (hstep_checkpoint_find(path, &found, &skipped, 1, &error) != HSTEP_OK ||
        (found.found && hstep_checkpoint_path(path, found.step, file, size, &error) != HSTEP_OK))
        return hs_report_error(&error);
    if (found.skipped > 0)
        hs_report("passed over: %s", skipped.reason);
    return found.found ? HS_EXIT_DONE : refuse(path, "there is no checkpoint in this folder that can be read");
}

int hs_model_vocabulary(const char *path, size_t *vocabulary) {
    hstep_tensor_file *file = NULL;
    hstep_tensor_info info = {0};
    hstep_error error = {0};
    if (hstep_tensor_file_open(path, &file, &error) != HSTEP_OK)
        return hs_report_error(&error);
    const size_t index = hstep_tensor_file_find(file, "token_embedding.weight");
    const bool there =
        index != SIZE_MAX && hstep_tensor_file_tensor(file, index, &info, &error) == HSTEP_OK && info.rank == 2;
    *vocabulary = info.dims[0];
    hstep_tensor_file_close(file);
    return there ? HS_EXIT_DONE : refuse(path, "it has no tensor token_embedding.weight of two dimensions");
}

/* `file` is where precisions by place come from if the choices do not say them. */
static int choose(const char *command, const char *file, const hs_model_choices *choices, hs_options *options) {
    const bool chosen = choices->precision_for.count > 0;
    if (choices->precision >= 0)
        options->precision = choices->precision;
    if (choices->precision >= 0 || chosen)
        options->precision_for.count = 0;
    for (size_t i = 0; i < choices->precision_for.count; ++i) {
        hs_refusal refusal;
        if (!hs_option_put_text(hs_option_find("precision-for"), choices->precision_for.items[i],
                                &options->precision_for, &refusal))
            return hs_report_no_memory();
    }
    options->backend = choices->backend;
    options->device = choices->device != NULL ? choices->device : "any";
    options->threads = choices->threads;
    options->levers = choices->levers;
    const int status = hs_options_check_device(command, options->device, options->backend);
    return status == HS_EXIT_DONE ? hs_places_read(options, command, chosen ? NULL : file) : status;
}

static int make_model(const char *path, hs_loaded_model *loaded) {
    const hstep_decoder_config decoder = hs_decoder_of(&loaded->options, loaded->vocabulary);
    hstep_error error = {0};
    if (hs_context_of(&loaded->options, loaded->options.levers, loaded->vocabulary, 0, &loaded->context, &error) !=
        HSTEP_OK)
        return hs_report_error(&error);
    hstep_status status = hstep_model_create_decoder(loaded->context, &decoder, &loaded->model, &error);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_load_weights(loaded->model, path, &error);
    /* What does not fit here contradicts itself: the shape came from the file. */
    return status == HSTEP_ERROR_SHAPE || status == HSTEP_ERROR_ARGUMENT ? refuse(path, error.message)
           : status != HSTEP_OK                                          ? hs_report_error(&error)
                                                                         : HS_EXIT_DONE;
}

int hs_model_check_options(const char *path, const hs_options *o) {
    if (o->layers == 0 || o->heads == 0 || o->width == 0 || o->feed_forward == 0 || o->context == 0)
        return refuse(path, "its configuration does not describe a model: it was not written by trainer train");
    return HS_EXIT_DONE;
}

int hs_model_load(const char *command, const char *path, const hs_model_choices *choices, hs_loaded_model *loaded) {
    char file[HS_PATH_ROOM];
    *loaded = (hs_loaded_model){.vocabulary = 0};
    int status = hs_model_find(path, file, sizeof file);
    if (status == HS_EXIT_DONE)
        status = hs_model_vocabulary(file, &loaded->vocabulary);
    if (status == HS_EXIT_DONE)
        status = hs_stored_load(file, &loaded->options);
    if (status != HS_EXIT_DONE)
        return status;
    const hs_options *o = &loaded->options;
    status = hs_model_check_options(file, o);
    if (status != HS_EXIT_DONE)
        return status;
    loaded->is_text = loaded->vocabulary == HSTEP_BYTE_VOCABULARY && o->token_type <= HSTEP_TOKENS_BYTES;
    status = choose(command, file, choices, &loaded->options);
    return status == HS_EXIT_DONE ? make_model(file, loaded) : status;
}

void hs_model_unload(hs_loaded_model *loaded) {
    hstep_model_destroy(loaded->model);
    hstep_context_destroy(loaded->context);
    hs_options_free(&loaded->options);
}
