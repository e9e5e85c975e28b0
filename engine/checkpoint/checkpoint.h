/* Checkpoints from the inside: the public functions with a table of file operations, and what they share. */
#ifndef HS_ENGINE_CHECKPOINT_CHECKPOINT_H
#define HS_ENGINE_CHECKPOINT_CHECKPOINT_H

#include <halfstep/halfstep.h>

#include "engine/files/tensor_file.h"
#include "engine/transaction/trainer.h"

/* How the names of tensors that are no weights begin. */
#define HS_PREFIX_FIRST "adamw.m."
#define HS_PREFIX_SECOND "adamw.v."
#define HS_PREFIX_STATE "trainer."
#define HS_PREFIX_SETTINGS "settings."
#define HS_PREFIX_SECTION "section."

/* ---- The table of numbers (state.c) ---- */

typedef enum hs_number_kind { HS_NUMBER_F64, HS_NUMBER_U64, HS_NUMBER_SIZE, HS_NUMBER_INT } hs_number_kind;

/* One number of hstep_checkpoint_state, and the tensor of rank 0 that stores it: F64, or U64 for the others. */
typedef struct hs_number_row {
    const char *tensor;
    hs_number_kind kind;
    size_t offset;
} hs_number_row;

extern const hs_number_row hs_number_rows[];
extern const size_t hs_number_count;

static inline hstep_storage hs_number_storage(const hs_number_row *row) {
    return row->kind == HS_NUMBER_F64 ? HSTEP_STORAGE_F64 : HSTEP_STORAGE_U64;
}

/* The eight bytes that a number has in a file. */
uint64_t hs_number_bits(const hs_number_row *row, const hstep_checkpoint_state *state);

/* The state of a trainer as it would be saved. */
hstep_checkpoint_state hs_state_of(const hstep_trainer *trainer);

/* ---- Comparing (compare.c) ---- */

/* Collects differences; the first ones also as text for a message. */
typedef struct hs_differences {
    hstep_difference *items;
    size_t room, count, shapes;
    char text[168];
    bool cut; /* the text has no room for all of them */
} hs_differences;

/* Whether the file has exactly the model's parameters; with `checkpoint` their moments too, and all in F64. */
void hs_compare_tensors(const hstep_tensor_file *file, const hstep_model *model, bool checkpoint,
                        hs_differences *differences);

/* Settings by which the coming updates would differ. */
void hs_compare_settings(const hstep_checkpoint_state *file, const hstep_checkpoint_state *trainer,
                         hs_differences *differences);

/* ---- Tensors on a backend (stream.c) ---- */

/* Writes all elements of a parameter-shaped buffer. */
hstep_status hs_stream_out(const hstep_model *model, size_t parameter, const hs_buffer *buffer, void *chunk,
                           hs_tensor_writer *writer, hstep_error *error);

/* Reads all elements of the tensor of that name into a parameter-shaped buffer. */
hstep_status hs_stream_in(const hstep_model *model, size_t parameter, hs_buffer *buffer, void *chunk,
                          const hstep_tensor_file *file, const char *prefix, hstep_error *error);

/* Index of the tensor PREFIX NAME, or SIZE_MAX; compares without making the name. */
size_t hs_find_prefixed(const hstep_tensor_file *file, const char *prefix, const char *name);

/* ---- The public functions with a table of file operations ---- */

hstep_status hs_checkpoint_save(const hs_files *files, hstep_trainer *trainer, const char *path,
                                const hstep_checkpoint_extras *extras, hstep_error *error);
hstep_status hs_checkpoint_load(const hs_files *files, hstep_trainer *trainer, const char *path, hstep_error *error);
hstep_status hs_checkpoint_load_weights(const hs_files *files, hstep_model *model, const char *path,
                                        hstep_error *error);
hstep_status hs_checkpoint_export(const hs_files *files, const char *from, const char *to, hstep_storage storage,
                                  hstep_export_report *report, hstep_error *error);
hstep_status hs_checkpoint_find(const hs_files *files, const char *folder, hstep_found_checkpoint *found,
                                hstep_skipped_checkpoint *skipped, size_t room, hstep_error *error);
hstep_status hs_checkpoint_keep(const hs_files *files, const char *folder, size_t last, int best, size_t *removed,
                                hstep_error *error);

#endif
