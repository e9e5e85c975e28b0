/* A safetensors file: a checkpoint, an attempt that was kept, weights alone, or tensors of another program. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <halfstep/checkpoint.h>

#include "trainer/checkpoints/read.h"
#include "trainer/inspect/kinds.h"
#include "trainer/report.h"

/* A longer section is not shown. */
enum { SECTION_SHOWN = 1 << 20, HEADER_MOST = 1 << 24 };

/* What is looked at, and where it goes. */
typedef struct looking {
    const hs_inspection *inspection;
    const hstep_tensor_file *file;
    bool checkpoint;
    json_t *found, *problems;
    hstep_error *error; /* of the first problem */
} looking;

/* The length of a header, then its brace. */
static bool recognizes(const hs_inspection *inspection) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(inspection->path), tail = sizeof ending - 1;
    if (length > tail && strcmp(inspection->path + length - tail, ending) == 0)
        return true;
    uint64_t header = 0;
    for (int i = 7; i >= 0 && inspection->head_size > 8; --i)
        header = header << 8 | inspection->head[i];
    return inspection->head_size > 8 && header > 0 && header <= HEADER_MOST && inspection->head[8] == '{';
}

/* ---- Problems: all of them are listed, the first is the command's error ---- */

static void note(looking *l, const hstep_error *problem) {
    if (json_array_size(l->problems) == 0)
        *l->error = *problem;
    json_array_append_new(l->problems, json_string(problem->message));
}

static void note_text(looking *l, const char *text) {
    hstep_error problem = {.status = HSTEP_ERROR_INPUT_FILE};
    snprintf(problem.message, sizeof problem.message, "'%.160s': %.200s", l->inspection->path, text);
    note(l, &problem);
}

static void verify_all(looking *l) {
    const bool has_checksums = hstep_tensor_file_has_checksums(l->file);
    for (size_t i = 0; i < hstep_tensor_file_count(l->file) && has_checksums; ++i) {
        hstep_error problem = {0};
        if (hstep_tensor_file_verify_tensor(l->file, i, &problem) != HSTEP_OK)
            note(l, &problem);
    }
}

/* Every weight has two moments of its shape, and every moment a weight. */
static void check_moment(looking *l, const hstep_tensor_info *weight, const char *prefix) {
    char text[160];
    const size_t size = strlen(prefix) + strlen(weight->name) + 1;
    char *name = malloc(size);
    if (name == NULL)
        return;
    snprintf(name, size, "%s%s", prefix, weight->name);
    const size_t index = hstep_tensor_file_find(l->file, name);
    hstep_tensor_info info = {.rank = SIZE_MAX};
    if (index != SIZE_MAX)
        (void)hstep_tensor_file_tensor(l->file, index, &info, NULL);
    const bool same = info.rank == weight->rank && info.storage == weight->storage &&
                      memcmp(info.dims, weight->dims, weight->rank * sizeof info.dims[0]) == 0;
    snprintf(text, sizeof text, "tensor \"%.100s\" is missing or of another type or shape", name);
    if (!same)
        note_text(l, text);
    free(name);
}

static void check_owner(looking *l, const char *moment, const char *weight) {
    char text[160];
    snprintf(text, sizeof text, "tensor \"%.100s\" belongs to no weight", moment);
    if (hstep_tensor_file_find(l->file, weight) == SIZE_MAX)
        note_text(l, text);
}

/* ---- Tensors ---- */

static const char *part_name(hstep_tensor_part part) {
    static const char *const names[] = {"weights", "moments", "state", "settings", "section"};
    return names[part];
}

static json_t *tensor_as_json(const looking *l, const hstep_tensor_info *info, hstep_tensor_part part) {
    json_t *shape = json_array();
    for (size_t d = 0; d < info->rank; ++d)
        json_array_append_new(shape, json_integer((json_int_t)info->dims[d]));
    json_t *tensor =
        json_pack("{s:s, s:s, s:o}", "name", info->name, "dtype", hstep_storage_name(info->storage), "shape", shape);
    if (l->checkpoint)
        json_object_set_new(tensor, "part", json_string(part_name(part)));
    return tensor;
}

/* What is summed up of weights. */
typedef struct weights {
    uint64_t elements;
    size_t count;
} weights;

static void check_weight(looking *l, const hstep_tensor_info *info, weights *sum) {
    sum->elements += info->elements;
    ++sum->count;
    if (l->checkpoint) {
        check_moment(l, info, "adamw.m.");
        check_moment(l, info, "adamw.v.");
    }
}

static void add_part(looking *l, hstep_tensor_part wanted, json_t *tensors, weights *sum) {
    for (size_t i = 0; i < hstep_tensor_file_count(l->file); ++i) {
        hstep_tensor_info info;
        const char *name;
        if (hstep_tensor_file_tensor(l->file, i, &info, NULL) != HSTEP_OK ||
            (l->checkpoint ? hstep_checkpoint_part(info.name, &name) : HSTEP_PART_WEIGHTS) != wanted)
            continue;
        json_array_append_new(tensors, tensor_as_json(l, &info, wanted));
        if (wanted == HSTEP_PART_WEIGHTS)
            check_weight(l, &info, sum);
        else
            check_owner(l, info.name, name);
    }
}

/* Weights before moments. Numbers and sections of a checkpoint are told by other fields. */
static void add_tensors(looking *l) {
    weights sum = {0};
    json_t *tensors = json_array();
    add_part(l, HSTEP_PART_WEIGHTS, tensors, &sum);
    if (l->checkpoint)
        add_part(l, HSTEP_PART_MOMENTS, tensors, &sum);
    json_object_set_new(l->found, l->checkpoint ? "parameters" : "elements", json_integer((json_int_t)sum.elements));
    json_object_set_new(l->found, l->checkpoint ? "parameter_tensors" : "tensor_count",
                        json_integer((json_int_t)sum.count));
    json_object_set_new(l->found, "tensors", tensors);
}

/* ---- State and sections of a checkpoint ---- */

static void add_state(looking *l) {
    hstep_checkpoint_state state;
    hstep_error problem = {0};
    if (hstep_checkpoint_read_state(l->file, &state, &problem) != HSTEP_OK) {
        /* A number whose checksum is wrong is among the damaged tensors already. */
        if (json_array_size(l->problems) == 0)
            note(l, &problem);
        return;
    }
    json_object_set_new(l->found, "step", json_integer((json_int_t)state.optimizer_step));
    json_object_set_new(l->found, "attempts", json_integer((json_int_t)state.attempts));
    json_object_set_new(l->found, "loss_scale", json_real(state.loss_scale));
    json_object_set_new(l->found, "finite_updates", json_integer((json_int_t)state.finite_updates));
    json_object_set_new(l->found, "held_out_loss",
                        isfinite(state.held_out_loss) ? json_real(state.held_out_loss) : json_null());
}

/* JSON as it is; of other bytes their number. */
static json_t *section_as_json(const looking *l, const char *name) {
    size_t size = 0;
    if (hstep_checkpoint_section(l->file, name, NULL, &size, NULL) != HSTEP_OK)
        return json_null();
    void *text = NULL;
    json_t *value = NULL;
    hstep_error problem;
    if (size <= SECTION_SHOWN && hs_section_read(l->file, name, &text, &size, &problem) == HSTEP_OK)
        value = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    free(text);
    return value != NULL ? value : json_pack("{s:I}", "bytes", (json_int_t)size);
}

static void add_sections(looking *l) {
    for (size_t i = 0; i < hstep_tensor_file_count(l->file); ++i) {
        hstep_tensor_info info;
        const char *name;
        if (hstep_tensor_file_tensor(l->file, i, &info, NULL) == HSTEP_OK &&
            hstep_checkpoint_part(info.name, &name) == HSTEP_PART_SECTION && json_object_get(l->found, name) == NULL)
            json_object_set_new(l->found, name, section_as_json(l, name));
    }
}

/* ---- Putting it together ---- */

static const char *kind_of(const looking *l, const char *schema) {
    if (l->checkpoint)
        return hstep_tensor_file_find(l->file, "section.attempt") != SIZE_MAX ? "attempt" : "checkpoint";
    return schema != NULL && strcmp(schema, HSTEP_WEIGHTS_SCHEMA) == 0 ? "weights" : "tensors";
}

static void add_text(const looking *l, const char *key) {
    const char *text = hstep_tensor_file_text(l->file, key);
    json_object_set_new(l->found, key, text != NULL ? json_string(text) : json_null());
}

static hstep_status look(looking *l) {
    const char *schema = hstep_tensor_file_text(l->file, "schema");
    l->checkpoint = schema != NULL && strcmp(schema, HSTEP_CHECKPOINT_SCHEMA) == 0;
    json_object_set_new(l->found, "kind", json_string(kind_of(l, schema)));
    add_text(l, "schema");
    add_text(l, "version");
    json_object_set_new(l->found, "bytes", json_integer((json_int_t)hstep_tensor_file_size(l->file)));
    /* Their places, before anything is known of them. */
    json_object_set_new(l->found, "verified", json_null());
    json_object_set(l->found, "problems", l->problems);
    verify_all(l);
    if (l->checkpoint)
        add_state(l);
    add_tensors(l);
    if (l->checkpoint)
        add_sections(l);
    const bool good = json_array_size(l->problems) == 0;
    if (hstep_tensor_file_has_checksums(l->file) || !good)
        json_object_set_new(l->found, "verified", json_boolean(good));
    return good ? HSTEP_OK : l->error->status;
}

static hstep_status describe(const hs_inspection *inspection, json_t *found, hstep_error *error) {
    hstep_tensor_file *file = NULL;
    hstep_status status = hstep_tensor_file_open(inspection->path, &file, error);
    if (status != HSTEP_OK)
        return status;
    looking l = {.inspection = inspection, .file = file, .found = found, .problems = json_array(), .error = error};
    status = l.problems != NULL ? look(&l) : hs_no_memory(error);
    json_decref(l.problems);
    hstep_tensor_file_close(file);
    return status;
}

const hs_inspect_kind hs_inspect_tensors = {"tensors", recognizes, describe};
