/**
 * @file checkpoint.h
 * Checkpoints: everything that the future of a run depends on, in one file that is whole or not there
 * (docs/checkpoints.md).
 *
 * Intended usage, from the simple to the advanced:
 *  1. hstep_checkpoint_save after an update, hstep_checkpoint_load into a trainer that was made with the same settings.
 *     The next update then has the bits that it would have had without the break.
 *  2. In a folder of a run: hstep_checkpoint_path names a file, hstep_checkpoint_find finds the newest that verifies,
 *     hstep_checkpoint_keep removes old ones and what killed runs left.
 *  3. What the library does not know (data position, random states, configuration, levers) are sections: bytes with a
 *     name, given at saving and read back by hstep_checkpoint_section.
 *  4. Weights alone: hstep_checkpoint_load_weights into a model, hstep_checkpoint_export to a file for other tools.
 *  5. hstep_tensor_file_open (tensor_file.h) with hstep_checkpoint_read_state, hstep_checkpoint_differences and
 *     hstep_checkpoint_restore: to look before loading.
 *
 * Files are read and written in pieces of a megabyte; no copy of a model is made in memory.
 */
#ifndef HALFSTEP_CHECKPOINT_H
#define HALFSTEP_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include <halfstep/model.h>
#include <halfstep/tensor_file.h>
#include <halfstep/trainer.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The `schema` in the metadata of a checkpoint. */
#define HSTEP_CHECKPOINT_SCHEMA "halfstep.checkpoint/1"
/** The same of a file of weights alone. */
#define HSTEP_WEIGHTS_SCHEMA "halfstep.weights/1"

/* ---- 1. Saving and loading ---- */

/** Bytes that the library keeps without looking at them. */
typedef struct hstep_section {
    const char *name; /**< Such as "configuration"; UTF-8, each name once. */
    const void *data; /**< The caller's; read while the checkpoint is written. */
    size_t size;      /**< Bytes. */
} hstep_section;

/** What goes into a checkpoint besides the trainer's own state. */
typedef struct hstep_checkpoint_extras {
    const hstep_section *sections; /**< In the order in which they are written. */
    size_t section_count;          /**< How many there are. */
    double held_out_loss;          /**< Of these weights, for hstep_checkpoint_keep; NaN where it was not measured. */
} hstep_checkpoint_extras;

/**
 * Writes a checkpoint under a temporary name, syncs it, renames it, and syncs the folder. A file that had the name is
 * replaced; when anything fails before that, it keeps every byte.
 * @param extras  NULL for no sections and no loss.
 * @return HSTEP_ERROR_OUTPUT_FILE naming the file, the operation and the system's reason; HSTEP_ERROR_DIRTY_GRADIENT
 *         between the steps of an update; HSTEP_ERROR_ARGUMENT for a parameter or section whose name cannot be used.
 */
HSTEP_API hstep_status hstep_checkpoint_save(hstep_trainer *trainer, const char *path,
                                             const hstep_checkpoint_extras *extras, hstep_error *error);

/**
 * Restores a trainer and its model. Names, shapes, settings and all checksums are checked before anything is changed.
 * Gradients and a tape that were there are gone. Should the file become unreadable after that, which the checks saw
 * readable a moment before, the trainer refuses to go on (HSTEP_ERROR_ARGUMENT) until a checkpoint was loaded whole.
 * @return HSTEP_ERROR_INPUT_FILE for a file that is damaged or no checkpoint; HSTEP_ERROR_SHAPE when it is of another
 *         model; HSTEP_ERROR_ARGUMENT when it is of other settings. The message lists the first differences.
 */
HSTEP_API hstep_status hstep_checkpoint_load(hstep_trainer *trainer, const char *path, hstep_error *error);

/* ---- 2. A folder of checkpoints ---- */

/** "FOLDER/checkpoint-00000100.safetensors"; HSTEP_ERROR_ARGUMENT when `size` bytes are too few. */
HSTEP_API hstep_status hstep_checkpoint_path(const char *folder, uint64_t step, char *path, size_t size,
                                             hstep_error *error);

/** A checkpoint that was passed over, and why. */
typedef struct hstep_skipped_checkpoint {
    uint64_t step;    /**< Of its name. */
    char reason[416]; /**< The message of the error. */
} hstep_skipped_checkpoint;

/** What hstep_checkpoint_find found. */
typedef struct hstep_found_checkpoint {
    int found;      /**< 0: there is no checkpoint, or none that verifies. */
    uint64_t step;  /**< Of its name: hstep_checkpoint_path gives the path. */
    size_t skipped; /**< Newer ones that did not verify; the first `room` of them are described. */
} hstep_found_checkpoint;

/**
 * Looks for the newest checkpoint that verifies, in all its bytes.
 * @param skipped  Place for descriptions of those that do not, the newest first; may be NULL when `room` is 0.
 * @return HSTEP_ERROR_INPUT_FILE when the folder cannot be listed. An empty folder is no error.
 */
HSTEP_API hstep_status hstep_checkpoint_find(const char *folder, hstep_found_checkpoint *found,
                                             hstep_skipped_checkpoint *skipped, size_t room, hstep_error *error);

/**
 * Removes checkpoints: all but the newest `last` (at least 1) and, where `best` is nonzero, the one of the lowest
 * held-out loss, the earliest of equals. Those whose header does not verify count as neither and are left. Removes
 * temporary files of `.safetensors` files that killed processes were writing, too; a living process holds a lock.
 */
HSTEP_API hstep_status hstep_checkpoint_keep(const char *folder, size_t last, int best, size_t *removed,
                                             hstep_error *error);

/* ---- 3. and 4. Sections and weights ---- */

/**
 * A section's bytes, after comparing their checksum. With data NULL only *size is set; otherwise *size says how much
 * room there is.
 * @return HSTEP_ERROR_ARGUMENT when the file has no such section; HSTEP_ERROR_INPUT_FILE when it is damaged.
 */
HSTEP_API hstep_status hstep_checkpoint_section(const hstep_tensor_file *file, const char *name, void *data,
                                                size_t *size, hstep_error *error);

/**
 * Loads weights from a checkpoint or any file that has exactly the model's parameters, in F64, F32, F16 or BF16, which
 * are widened exactly. Checked before anything is changed, like hstep_checkpoint_load; a file without checksums is
 * taken as it is, and hstep_tensor_file_has_checksums tells.
 */
HSTEP_API hstep_status hstep_checkpoint_load_weights(hstep_model *model, const char *path, hstep_error *error);

/** What rounding did to the weights of an export. */
typedef struct hstep_export_report {
    size_t tensors;          /**< Written, ... */
    uint64_t elements;       /**< ... and numbers in them. */
    uint64_t overflowed;     /**< Finite numbers that became infinite, ... */
    uint64_t underflowed;    /**< ... others than 0 that became 0, ... */
    uint64_t nonfinite;      /**< ... and numbers that were infinite or NaN before. */
    char first_overflow[96]; /**< The tensor of the first overflow; empty without one. */
    uint64_t first_index;    /**< Its element, row-major. */
} hstep_export_report;

/**
 * Writes the weights of a checkpoint, or of another file, alone: F64, F32, F16 or BF16, each number rounded once. The
 * file is verified before, where it has checksums. Overflow is no error: see the report, which may be NULL.
 */
HSTEP_API hstep_status hstep_checkpoint_export(const char *from, const char *to, hstep_storage storage,
                                               hstep_export_report *report, hstep_error *error);

/* ---- 5. Looking before loading ---- */

/** What a checkpoint stores of a trainer, apart from tensors of the model's size. */
typedef struct hstep_checkpoint_state {
    uint64_t optimizer_step;     /**< Committed updates; the next scheduled step is one more. */
    uint64_t attempts;           /**< Committed and skipped. */
    uint64_t micro_batch;        /**< Batches of an unfinished window: always 0, a checkpoint stands between updates. */
    uint64_t finite_updates;     /**< Committed since the loss scale changed. */
    double loss_scale;           /**< Of the next attempt. */
    double beta1_power;          /**< AdamW: beta1 to the power of committed updates, ... */
    double beta2_power;          /**< ... and beta2. */
    double held_out_loss;        /**< NaN where it was not measured. */
    hstep_trainer_config config; /**< The trainer's settings. */
} hstep_checkpoint_state;

/** HSTEP_ERROR_INPUT_FILE when the file is no checkpoint or its state is damaged. */
HSTEP_API hstep_status hstep_checkpoint_read_state(const hstep_tensor_file *file, hstep_checkpoint_state *state,
                                                   hstep_error *error);

/** The part of a file that a tensor belongs to. */
typedef enum hstep_tensor_part {
    HSTEP_PART_WEIGHTS = 0,
    HSTEP_PART_MOMENTS = 1,  /**< `adamw.m.NAME` and `adamw.v.NAME` */
    HSTEP_PART_STATE = 2,    /**< `trainer.NAME` */
    HSTEP_PART_SETTINGS = 3, /**< `settings.NAME` */
    HSTEP_PART_SECTION = 4   /**< `section.NAME` */
} hstep_tensor_part;

/** By the name of the tensor; *name, which may be NULL, is what follows the part's prefix. */
HSTEP_API hstep_tensor_part hstep_checkpoint_part(const char *tensor, const char **name);

/** Something that a file and a trainer have differently, in words. */
typedef struct hstep_difference {
    int shape;        /**< 1: of a tensor, so that the file cannot be loaded; 0: of a setting. */
    char name[96];    /**< Of the tensor or setting, such as "learning_rate". */
    char file[80];    /**< Such as "F64 [8, 4]" or "0.001"; "missing". */
    char trainer[80]; /**< The same of the trainer. */
} hstep_difference;

/**
 * Lists all differences, tensors first. *count is how many there are; the first `room` of them are written.
 */
HSTEP_API hstep_status hstep_checkpoint_differences(const hstep_tensor_file *file, const hstep_trainer *trainer,
                                                    hstep_difference *differences, size_t room, size_t *count,
                                                    hstep_error *error);

/**
 * hstep_checkpoint_load from an open file.
 * @param other_settings  Nonzero: the trainer keeps its own settings where the file's differ, and the loss scale is
 *                        moved into their bounds. The numbers of the run change.
 */
HSTEP_API hstep_status hstep_checkpoint_restore(hstep_trainer *trainer, const hstep_tensor_file *file,
                                                int other_settings, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
