/* A file that could be trained on: text, or a token shard. */
#include <inttypes.h>
#include <stdio.h>

#include "trainer/inspect/kinds.h"

/* Enough to see what it is. */
enum { SHOWN = 16 };

static bool recognizes(const hs_inspection *inspection) {
    (void)inspection;
    return true;
}

static hstep_status add_first_tokens(const hstep_dataset *dataset, json_t *found, hstep_error *error) {
    int32_t tokens[SHOWN];
    const size_t all = hstep_dataset_tokens(dataset), count = all < SHOWN ? all : SHOWN;
    const hstep_status status = hstep_dataset_read(dataset, 0, count, tokens, error);
    json_t *list = json_array();
    for (size_t i = 0; i < count && status == HSTEP_OK; ++i)
        json_array_append_new(list, json_integer(tokens[i]));
    json_object_set_new(found, "first_tokens", list);
    return status;
}

static hstep_status add_file(const hstep_dataset *dataset, json_t *found, hstep_error *error) {
    hstep_data_file file;
    const hstep_status status = hstep_dataset_file(dataset, 0, &file, error);
    if (status != HSTEP_OK)
        return status;
    char checksum[17];
    snprintf(checksum, sizeof checksum, "%016" PRIx64, file.checksum);
    json_object_set_new(found, "format", json_string(file.format));
    json_object_set_new(found, "token_type", json_string(hstep_token_type_name(file.type)));
    json_object_set_new(found, "tokens", json_integer((json_int_t)file.tokens));
    json_object_set_new(found, "vocabulary_needed", json_integer((json_int_t)hstep_dataset_vocabulary(dataset)));
    json_object_set_new(found, "checksum", json_string(checksum));
    return add_first_tokens(dataset, found, error);
}

static hstep_status describe(const hs_inspection *inspection, json_t *found, hstep_error *error) {
    const hstep_dataset_options options = {.token_type = inspection->token_type,
                                           .vocabulary = HSTEP_VOCABULARY_OF_DATA};
    hstep_dataset *dataset = NULL;
    hstep_status status = hstep_dataset_load(&inspection->path, 1, &options, &dataset, error);
    if (status == HSTEP_OK)
        status = add_file(dataset, found, error);
    hstep_dataset_destroy(dataset);
    return status;
}

const hs_inspect_kind hs_inspect_data = {"data", recognizes, describe};
