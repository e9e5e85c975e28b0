/*
 * Checkpoints for programs that are not halfstep's (read_back.py): writes a checkpoint and its exports into the current
 * folder, or lists what is in a file, a line for each tensor.
 */
#include <halfstep/halfstep.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hstep_error error;

static void require(hstep_status status) {
    if (status == HSTEP_OK)
        return;
    fprintf(stderr, "%s: %s\n", hstep_status_name(status), error.message);
    exit(EXIT_FAILURE);
}

static void write_all(void) {
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
    hstep_update update;
    hstep_decoder_config config = hstep_decoder_defaults();
    config.vocabulary = 258;
    config.width = 8;
    config.layers = 1;
    config.heads = 2;
    config.feed_forward = 6;
    const int32_t tokens[4] = {0, 5, 6, 7}, targets[4] = {5, 6, 7, 1};
    const hstep_batch batch = {.sequences = 1, .length = 4, .tokens = tokens, .targets = targets};
    const double gain[8] = {1 + 0x1p-11 + 0x1p-40, 70000, -0.0, 5e-324, INFINITY, -1e300, 0.1, 1e-30};
    const hstep_trainer_config settings = hstep_trainer_defaults(HSTEP_PRECISION_BF16);
    require(hstep_context_create(NULL, &context, &error));
    require(hstep_model_create_decoder(context, &config, &model, &error));
    require(hstep_model_initialize(model, HSTEP_INIT_NORMAL, 1, &error));
    require(hstep_trainer_create(model, &settings, &trainer, &error));
    require(hstep_trainer_update(trainer, &batch, 1, &update, &error));
    require(hstep_model_write_parameter(model, hstep_model_find_parameter(model, "final_norm.gain"), gain, &error));
    const hstep_section sections[] = {{"configuration", "{\"width\": 8}", 12}, {"odd", "\0\1\2", 3}};
    const hstep_checkpoint_extras extras = {sections, 2, 5.5};
    require(hstep_checkpoint_save(trainer, "checkpoint", &extras, &error));
    static const char *const names[] = {"f64", "f32", "f16", "bf16"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        hstep_storage storage;
        require(hstep_storage_parse(names[i], &storage));
        require(hstep_checkpoint_export("checkpoint", names[i], storage, NULL, &error));
    }
    hstep_trainer_destroy(trainer);
    hstep_model_destroy(model);
    hstep_context_destroy(context);
}

static void list(const char *path) {
    hstep_tensor_file *file;
    require(hstep_tensor_file_open(path, &file, &error));
    for (size_t i = 0; i < hstep_tensor_file_count(file); i++) {
        hstep_tensor_info info;
        require(hstep_tensor_file_tensor(file, i, &info, &error));
        printf("%s %s", info.name, hstep_storage_name(info.storage));
        for (size_t d = 0; d < info.rank; d++)
            printf(" %zu", info.dims[d]);
        double *values = calloc((size_t)info.elements + 1, sizeof *values);
        if (info.storage <= HSTEP_STORAGE_BF16) {
            require(hstep_tensor_file_read(file, i, 0, (size_t)info.elements, values, &error));
            printf(" =");
            for (uint64_t n = 0; n < info.elements; n++)
                printf(" %.17g", values[n]);
        }
        free(values);
        printf("\n");
    }
    hstep_tensor_file_close(file);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "write") == 0)
        write_all();
    else if (argc == 3 && strcmp(argv[1], "list") == 0)
        list(argv[2]);
    else
        return 2;
    return EXIT_SUCCESS;
}
