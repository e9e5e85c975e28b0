/* The numbers of a trainer in a file: each is a tensor of rank 0, so that no decimal comes between. */
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/error.h"
#include "engine/files/path.h"

#define AT(field) offsetof(hstep_checkpoint_state, field)

const hs_number_row hs_number_rows[] = {
    {HS_PREFIX_STATE "optimizer_step", HS_NUMBER_U64, AT(optimizer_step)},
    {HS_PREFIX_STATE "attempts", HS_NUMBER_U64, AT(attempts)},
    {HS_PREFIX_STATE "micro_batch", HS_NUMBER_U64, AT(micro_batch)},
    {HS_PREFIX_STATE "finite_updates", HS_NUMBER_U64, AT(finite_updates)},
    {HS_PREFIX_STATE "loss_scale", HS_NUMBER_F64, AT(loss_scale)},
    {HS_PREFIX_STATE "beta1_power", HS_NUMBER_F64, AT(beta1_power)},
    {HS_PREFIX_STATE "beta2_power", HS_NUMBER_F64, AT(beta2_power)},
    {HS_PREFIX_STATE "held_out_loss", HS_NUMBER_F64, AT(held_out_loss)},
    {HS_PREFIX_SETTINGS "beta1", HS_NUMBER_F64, AT(config.adamw.beta1)},
    {HS_PREFIX_SETTINGS "beta2", HS_NUMBER_F64, AT(config.adamw.beta2)},
    {HS_PREFIX_SETTINGS "epsilon", HS_NUMBER_F64, AT(config.adamw.epsilon)},
    {HS_PREFIX_SETTINGS "weight_decay", HS_NUMBER_F64, AT(config.adamw.weight_decay)},
    {HS_PREFIX_SETTINGS "grad_clip", HS_NUMBER_F64, AT(config.adamw.grad_clip)},
    {HS_PREFIX_SETTINGS "decay_vectors", HS_NUMBER_INT, AT(config.adamw.decay_vectors)},
    {HS_PREFIX_SETTINGS "schedule", HS_NUMBER_INT, AT(config.schedule.kind)},
    {HS_PREFIX_SETTINGS "learning_rate", HS_NUMBER_F64, AT(config.schedule.learning_rate)},
    {HS_PREFIX_SETTINGS "min_learning_rate", HS_NUMBER_F64, AT(config.schedule.min_learning_rate)},
    {HS_PREFIX_SETTINGS "warmup_steps", HS_NUMBER_U64, AT(config.schedule.warmup_steps)},
    {HS_PREFIX_SETTINGS "steps", HS_NUMBER_U64, AT(config.schedule.steps)},
    {HS_PREFIX_SETTINGS "loss_scale", HS_NUMBER_F64, AT(config.scaler.initial)},
    {HS_PREFIX_SETTINGS "min_loss_scale", HS_NUMBER_F64, AT(config.scaler.minimum)},
    {HS_PREFIX_SETTINGS "max_loss_scale", HS_NUMBER_F64, AT(config.scaler.maximum)},
    {HS_PREFIX_SETTINGS "growth_interval", HS_NUMBER_U64, AT(config.scaler.growth_interval)},
    {HS_PREFIX_SETTINGS "replicas", HS_NUMBER_SIZE, AT(config.replicas)},
    {HS_PREFIX_SETTINGS "micro_batches", HS_NUMBER_SIZE, AT(config.micro_batches)},
};

const size_t hs_number_count = sizeof hs_number_rows / sizeof hs_number_rows[0];

_Static_assert(sizeof(hstep_schedule_kind) == sizeof(int), "the schedule's kind is stored as an int");

uint64_t hs_number_bits(const hs_number_row *row, const hstep_checkpoint_state *state) {
    const char *at = (const char *)state + row->offset;
    uint64_t bits = 0;
    size_t size = 0;
    int number = 0;
    switch (row->kind) {
    case HS_NUMBER_F64:
    case HS_NUMBER_U64:
        memcpy(&bits, at, sizeof bits);
        break;
    case HS_NUMBER_SIZE:
        memcpy(&size, at, sizeof size);
        bits = size;
        break;
    case HS_NUMBER_INT:
        memcpy(&number, at, sizeof number);
        bits = (uint64_t)number;
        break;
    }
    return bits;
}

/* False when the number does not fit. */
static bool store(const hs_number_row *row, uint64_t bits, hstep_checkpoint_state *state) {
    char *at = (char *)state + row->offset;
    const size_t size = (size_t)bits;
    const int number = (int)(bits & INT_MAX);
    switch (row->kind) {
    case HS_NUMBER_F64:
    case HS_NUMBER_U64:
        memcpy(at, &bits, sizeof bits);
        return true;
    case HS_NUMBER_SIZE:
        memcpy(at, &size, sizeof size);
        return size == bits;
    case HS_NUMBER_INT:
        memcpy(at, &number, sizeof number);
        return bits <= INT_MAX;
    }
    return false;
}

hstep_checkpoint_state hs_state_of(const hstep_trainer *trainer) {
    hstep_checkpoint_state state = {.optimizer_step = trainer->adamw.step,
                                    .attempts = trainer->attempts,
                                    .finite_updates = trainer->scaler.finite_updates,
                                    .loss_scale = trainer->scaler.scale,
                                    .beta1_power = trainer->adamw.power1,
                                    .beta2_power = trainer->adamw.power2,
                                    .config = trainer->config};
    state.config.adamw.decay_vectors = trainer->config.adamw.decay_vectors != 0;
    return state;
}

/* ---- Reading ---- */

static hstep_status read_number(const hstep_tensor_file *file, const hs_number_row *row, hstep_checkpoint_state *state,
                                hstep_error *error) {
    const size_t index = hstep_tensor_file_find(file, row->tensor);
    HS_RETURN_IF(index == SIZE_MAX || file->tensors[index].rank != 0 ||
                     file->tensors[index].storage != hs_number_storage(row),
                 error, HSTEP_ERROR_INPUT_FILE, "'%s': number \"%s\" is missing or of another type; use another file",
                 hs_show_path(file->path).text, row->tensor);
    uint64_t bits = 0;
    HS_FORWARD(hs_tensor_file_read_bytes(file, file->tensors[index].offset, &bits, sizeof bits, error));
    HS_FORWARD(hs_tensor_file_check_bytes(file, index, &bits, error));
    HS_RETURN_IF(!store(row, bits, state), error, HSTEP_ERROR_INPUT_FILE,
                 "'%s', byte %" PRIu64 ": number \"%s\" is out of range; use another file",
                 hs_show_path(file->path).text, file->tensors[index].offset, row->tensor);
    return HSTEP_OK;
}

/* What no run can have stored: right checksums over wrong numbers, as a program that writes such files may make. */
static const char *find_nonsense(const hstep_checkpoint_state *state) {
    const hstep_scaler scaler = {state->loss_scale, 1, state->loss_scale, 1};
    if (hs_scaler_refusal(&scaler) != NULL)
        return "its loss scale is no power of two of at least 1";
    if (!(state->beta1_power >= 0 && state->beta1_power <= 1 && state->beta2_power >= 0 && state->beta2_power <= 1))
        return "its powers of beta do not lie between 0 and 1";
    if (state->attempts < state->optimizer_step || state->optimizer_step > INT64_MAX || state->attempts > INT64_MAX)
        return "its counts of updates and attempts do not fit together";
    if (state->micro_batch != 0)
        return "it was taken in the middle of an update, which this version cannot go on with";
    return NULL;
}

hstep_status hstep_checkpoint_read_state(const hstep_tensor_file *file, hstep_checkpoint_state *state,
                                         hstep_error *error) {
    HS_RETURN_IF(file == NULL || state == NULL, error, HSTEP_ERROR_ARGUMENT, "no file or no place for the state");
    const char *schema = hstep_tensor_file_text(file, "schema");
    HS_RETURN_IF(schema == NULL || strcmp(schema, HSTEP_CHECKPOINT_SCHEMA) != 0, error, HSTEP_ERROR_INPUT_FILE,
                 "'%s' is no checkpoint of this version: its schema is \"%.40s\", not \"%s\"",
                 hs_show_path(file->path).text, schema != NULL ? schema : "", HSTEP_CHECKPOINT_SCHEMA);
    hstep_checkpoint_state read = {0};
    for (size_t i = 0; i < hs_number_count; i++)
        HS_FORWARD(read_number(file, &hs_number_rows[i], &read, error));
    const char *nonsense = find_nonsense(&read);
    HS_RETURN_IF(nonsense != NULL, error, HSTEP_ERROR_INPUT_FILE, "'%s': %s; use another file",
                 hs_show_path(file->path).text, nonsense);
    *state = read;
    return HSTEP_OK;
}

hstep_tensor_part hstep_checkpoint_part(const char *tensor, const char **name) {
    static const struct {
        const char *prefix;
        hstep_tensor_part part;
    } parts[] = {{HS_PREFIX_FIRST, HSTEP_PART_MOMENTS},
                 {HS_PREFIX_SECOND, HSTEP_PART_MOMENTS},
                 {HS_PREFIX_STATE, HSTEP_PART_STATE},
                 {HS_PREFIX_SETTINGS, HSTEP_PART_SETTINGS},
                 {HS_PREFIX_SECTION, HSTEP_PART_SECTION}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const size_t length = strlen(parts[i].prefix);
        if (strncmp(tensor, parts[i].prefix, length) == 0) {
            if (name != NULL)
                *name = tensor + length;
            return parts[i].part;
        }
    }
    if (name != NULL)
        *name = tensor;
    return HSTEP_PART_WEIGHTS;
}
