/**
 * @file records.h
 * Run records: what a run was and did, as JSON Lines that any strict JSON parser reads (docs/records.md).
 *
 * Intended usage:
 *  1. hstep_records_open.
 *  2. hstep_records_write_run once, then the other kinds as they happen, and hstep_records_write_end.
 *  3. hstep_records_close, whose status counts too.
 *
 * Every line is written whole and at once, nothing is held back. When a line cannot be written the file is cut back to
 * the last whole line (unless it is standard output or no regular file), the call returns HSTEP_ERROR_OUTPUT_FILE
 * naming the path and the system's reason, and every later write returns the same.
 *
 * Numbers keep 17 significant digits. A nonfinite one is null, with a field `<name>_nonfinite` beside it ("inf", "-inf"
 * or "nan"). Integers go up to 2^63 - 1; a larger one is HSTEP_ERROR_ARGUMENT and writes nothing. Texts need not be
 * UTF-8: bytes that are not become U+FFFD, and `<name>_bytes` beside it holds the original in hexadecimal.
 */
#ifndef HALFSTEP_RECORDS_H
#define HALFSTEP_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include <halfstep/context.h>
#include <halfstep/model.h>
#include <halfstep/trace.h>
#include <halfstep/trainer.h>
#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The `schema` of every line. */
#define HSTEP_RECORDS_SCHEMA "halfstep.records/1"

/** An open file of records. */
typedef struct hstep_records hstep_records;

/** Which field of a setting holds its value. */
typedef enum hstep_setting_kind {
    HSTEP_SETTING_TEXT = 0,    /**< `text` */
    HSTEP_SETTING_NUMBER = 1,  /**< `number` */
    HSTEP_SETTING_INTEGER = 2, /**< `integer` */
    HSTEP_SETTING_BOOLEAN = 3  /**< `boolean` */
} hstep_setting_kind;

/** One setting of the run, by the name of its option. */
typedef struct hstep_setting {
    const char *name;        /**< Such as "learning-rate". */
    hstep_setting_kind kind; /**< Which of the following counts. */
    const char *text;        /**< TEXT; NULL is written as null: not set. */
    double number;           /**< NUMBER */
    uint64_t integer;        /**< INTEGER */
    int boolean;             /**< BOOLEAN */
} hstep_setting;

/** One source of training data. */
typedef struct hstep_data_source {
    const char *name;           /**< The path, or the name of a built-in corpus. */
    uint64_t tokens;            /**< All of them. */
    uint64_t training_tokens;   /**< Those that updates may draw from. */
    uint64_t evaluation_tokens; /**< Those held out. */
    uint64_t checksum;          /**< XXH3 (64 bits) of the source's bytes. */
    double unigram_loss;        /**< hstep_dataset_unigram_loss: what byte frequencies alone reach. */
} hstep_data_source;

/** The first line of a run. */
typedef struct hstep_run_record {
    hstep_precision precision;           /**< Of the products */
    const hstep_setting *settings;       /**< The full configuration. */
    size_t setting_count;                /**< How many there are. */
    const hstep_decoder_config *decoder; /**< NULL for a model that is no decoder. */
    uint64_t parameter_tensors;          /**< hstep_model_parameter_count */
    uint64_t parameters;                 /**< Learned scalars: hstep_model_scalar_count */
    const char *backend;                 /**< hstep_context_backend_name */
    const char *device;                  /**< hstep_context_device_name */
    unsigned threads;                    /**< hstep_context_threads */
    const hstep_lever *levers;           /**< hstep_context_levers, all of them */
    size_t lever_count;                  /**< How many there are. */
    const hstep_data_source *data;       /**< What is trained on. */
    size_t data_count;                   /**< How many sources there are. */
    uint64_t seed;                       /**< Of weights and batches. */
} hstep_run_record;

/** An attempt. */
typedef struct hstep_update_record {
    const hstep_update *update; /**< What became of it. */
    double seconds;             /**< What the attempt took; tokens per second come from it. */
    const hstep_trace *trace;   /**< Its statistics; NULL for none. */
    const hstep_work *work;     /**< What the device did for it; NULL where that is not counted, or not asked for. */
} hstep_update_record;

/** A loss on held-out data. */
typedef struct hstep_evaluation_record {
    uint64_t step;   /**< Committed updates at that time. */
    double loss;     /**< Mean over the targets, in nats. */
    uint64_t tokens; /**< Targets of it. */
    double seconds;  /**< What it took. */
} hstep_evaluation_record;

/** Generated text. */
typedef struct hstep_sample_record {
    uint64_t step;      /**< Committed updates at that time. */
    const char *prompt; /**< May hold any bytes, zero too. */
    size_t prompt_size; /**< Bytes. */
    const char *text;   /**< What followed the prompt. */
    size_t text_size;   /**< Bytes. */
} hstep_sample_record;

/** How often an operation was the first to overflow. */
typedef struct hstep_operation_count {
    const char *operation; /**< hstep_overflow.operation */
    uint64_t count;        /**< Attempts that it ended. */
} hstep_operation_count;

/** Something that the reader of a run should know. */
typedef struct hstep_warning_record {
    uint64_t step;                          /**< Committed updates at that time. */
    const char *kind;                       /**< A short fixed word, such as "skips". */
    const char *message;                    /**< A sentence. */
    uint64_t attempts;                      /**< So far. */
    uint64_t skipped;                       /**< Of them. */
    const hstep_operation_count *overflows; /**< By operation. */
    size_t overflow_count;                  /**< How many operations there are. */
} hstep_warning_record;

/** A checkpoint that was written. */
typedef struct hstep_checkpoint_record {
    uint64_t step;    /**< Committed updates in it. */
    const char *path; /**< The file. */
    double seconds;   /**< What writing it took. */
} hstep_checkpoint_record;

/** A skipped attempt that was kept, to be run again. */
typedef struct hstep_dump_record {
    uint64_t step;    /**< The scheduled step that was attempted. */
    uint64_t attempt; /**< As in the update record before. */
    const char *path; /**< The file. */
    double seconds;   /**< What writing it took. */
} hstep_dump_record;

/** A setting that is another from now on. */
typedef struct hstep_setting_change {
    hstep_setting before; /**< Of the run so far. */
    hstep_setting after;  /**< Of the same name. */
} hstep_setting_change;

/** A run that goes on. What stood in the file behind the checkpoint was cut off: it comes again. */
typedef struct hstep_resume_record {
    uint64_t step;                       /**< Committed updates so far. */
    const char *path;                    /**< The checkpoint that it goes on from. */
    const char *const *passed_over;      /**< Newer checkpoints that did not verify, each with its reason. */
    size_t passed_over_count;            /**< How many there are. */
    const hstep_setting_change *changes; /**< Of the configuration, since the records spoke of it last. */
    size_t change_count;                 /**< How many there are. */
} hstep_resume_record;

/** How a run ended. */
typedef enum hstep_run_outcome {
    HSTEP_RUN_FINISHED = 0,       /**< "finished" */
    HSTEP_RUN_DIVERGED = 1,       /**< "diverged": a nonfinite forward value or loss */
    HSTEP_RUN_TOO_MANY_SKIPS = 2, /**< "too-many-skips" */
    HSTEP_RUN_INTERRUPTED = 3,    /**< "interrupted" */
    HSTEP_RUN_FAILED = 4,         /**< "failed": any other error */
    HSTEP_RUN_TIME_LIMIT = 5      /**< "time-limit" */
} hstep_run_outcome;

/** The last line of a run. */
typedef struct hstep_end_record {
    hstep_run_outcome outcome; /**< How it ended. */
    const char *message;       /**< Why it ended early; NULL is written as null. */
    uint64_t steps;            /**< Committed updates of this run. */
    uint64_t attempts;         /**< Committed and skipped. */
    uint64_t skipped;          /**< Of them. */
    uint64_t tokens;           /**< Of committed updates. */
    double seconds;            /**< What the run took. */
    int weights_lost;          /**< Nonzero: the device that held them was lost; the checksum is written as null. */
    uint64_t weights_checksum; /**< hstep_model_checksum */
    uint64_t correct;          /**< Right answers of ... */
    uint64_t questions;        /**< ... so many questions; 0: the data has no answers to count. */
} hstep_end_record;

/**
 * Makes the file, or empties it. "-" is standard output, which hstep_records_close leaves open; what stdio holds back
 * for it should be flushed before. Like the loading of data, opening a named pipe can be interrupted by a signal.
 */
HSTEP_API hstep_status hstep_records_open(const char *path, hstep_records **records, hstep_error *error);

/**
 * Goes on in a file that there is: what stands behind its first `bytes` bytes is cut off.
 * @return HSTEP_ERROR_OUTPUT_FILE when it is shorter, no regular file, or cannot be written.
 */
HSTEP_API hstep_status hstep_records_continue(const char *path, uint64_t bytes, hstep_records **records,
                                              hstep_error *error);

/** Bytes of all lines so far, for hstep_records_continue; 0 where the records go to what is no regular file. */
HSTEP_API uint64_t hstep_records_size(const hstep_records *records);

/** Closes and frees in any case. Reports what the system says at closing. NULL is ignored. */
HSTEP_API hstep_status hstep_records_close(hstep_records *records, hstep_error *error);

/** Writes the first line. All writing functions have the errors that the beginning of this file names. */
HSTEP_API hstep_status hstep_records_write_run(hstep_records *records, const hstep_run_record *run, hstep_error *error);

/** Writes what became of an attempt. */
HSTEP_API hstep_status hstep_records_write_update(hstep_records *records, const hstep_update_record *update,
                                                  hstep_error *error);

/** Writes a loss on held-out data. */
HSTEP_API hstep_status hstep_records_write_evaluation(hstep_records *records, const hstep_evaluation_record *evaluation,
                                                      hstep_error *error);

/** Writes a text that the model made. */
HSTEP_API hstep_status hstep_records_write_sample(hstep_records *records, const hstep_sample_record *sample,
                                                  hstep_error *error);

/** Writes a warning. */
HSTEP_API hstep_status hstep_records_write_warning(hstep_records *records, const hstep_warning_record *warning,
                                                   hstep_error *error);

/** Writes that a checkpoint was saved. */
HSTEP_API hstep_status hstep_records_write_checkpoint(hstep_records *records, const hstep_checkpoint_record *checkpoint,
                                                      hstep_error *error);

/** Writes that a skipped attempt was kept. */
HSTEP_API hstep_status hstep_records_write_dump(hstep_records *records, const hstep_dump_record *dump,
                                                hstep_error *error);

/** Writes that the run goes on from a checkpoint. */
HSTEP_API hstep_status hstep_records_write_resume(hstep_records *records, const hstep_resume_record *resume,
                                                  hstep_error *error);

/** Writes the last line. */
HSTEP_API hstep_status hstep_records_write_end(hstep_records *records, const hstep_end_record *end, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
