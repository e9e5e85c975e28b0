/*
 * The options of `trainer train`. One table (table.c) says name, kind, default, help text and target of each; the
 * command line, --config, --help, the defaults and the run record are all made from it.
 */
#ifndef HS_TRAINER_OPTIONS_H
#define HS_TRAINER_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <halfstep/graph.h>
#include <halfstep/optim.h>

/* Texts of an option that may be repeated. */
typedef struct hs_texts {
    const char **items;
    size_t count;
} hs_texts;

enum { HS_OPTIONS_MAX = 64, HS_PRECISIONS = 3 };

/* Where a value came from; a stronger source replaces what a weaker one said. */
typedef enum hs_source { HS_SOURCE_DEFAULT, HS_SOURCE_CHECKPOINT, HS_SOURCE_CONFIG, HS_SOURCE_COMMAND_LINE } hs_source;

enum { HS_PATH_ROOM = 1024 };

/* What --resume found. */
typedef struct hs_resumed {
    bool found;
    char path[HS_PATH_ROOM]; /* of the checkpoint */
    char **passed_over;      /* newer ones that did not verify, each with its reason */
    size_t passed_over_count;
    json_t *configuration; /* of the run so far; owns texts of options, ... */
    char **texts;          /* ... and so do these, which JSON has no place for */
    size_t text_count;
    char *lever_set; /* the levers to go on with, where some do not give the reference's bits; NULL: as options say */
} hs_resumed;

typedef struct hs_options {
    hs_texts data, eval_data, precision_for;
    double held_out;
    int token_type; /* hstep_token_type */
    uint64_t vocabulary;

    uint64_t layers, width, heads, kv_heads, feed_forward, context;
    int precision; /* hstep_precision */
    int init;      /* hstep_initialization */
    /* trainer/options/places.h makes these of precision_for: */
    hstep_precision_rule *rules;
    size_t rule_count;
    bool in_use[HS_PRECISIONS]; /* by hstep_precision: products have it */

    uint64_t steps, batch_size, micro_batches, replicas, head_rows;
    int schedule;  /* hstep_schedule_kind */
    int recompute; /* hstep_recompute */
    double learning_rate, min_learning_rate;
    uint64_t warmup_steps;
    double beta1, beta2, epsilon, weight_decay, grad_clip;

    hstep_scaler scaler;

    uint64_t eval_every, eval_batches, trace;
    const char *prompt;
    uint64_t sample_tokens;
    double temperature;

    int backend;        /* hstep_backend */
    const char *device; /* "any", or which */
    uint64_t threads, seed;
    const char *levers;
    const char *out, *records, *config;
    uint64_t checkpoint_every, keep_checkpoints, dump_overflow;
    double max_time;
    bool resume, allow_changes, dry_run, quiet, help;
    hs_resumed resumed;

    hs_source sources[HS_OPTIONS_MAX]; /* by place in the table */
    json_t *config_root;               /* owns the texts that came from --config */
} hs_options;

typedef enum hs_option_kind {
    HS_OPTION_FLAG,   /* bool */
    HS_OPTION_COUNT,  /* uint64_t */
    HS_OPTION_REAL,   /* double */
    HS_OPTION_CHOICE, /* int, by name */
    HS_OPTION_TEXT,   /* const char * */
    HS_OPTION_TEXTS   /* hs_texts */
} hs_option_kind;

typedef struct hs_choice {
    const char *name; /* a NULL name ends a list */
    int value;
} hs_choice;

typedef struct hs_option {
    const char *name;
    hs_option_kind kind;
    size_t offset;               /* of the target in hs_options, or in what another command sets */
    const char *group;           /* heading in --help */
    const char *argument;        /* its placeholder in --help */
    const char *initial;         /* the default, as one would type it; NULL: not set, or by precision */
    const char *builtin_initial; /* the default without --data, where it is another */
    const char *help;
    double minimum, maximum;
    bool above, below; /* minimum, maximum themselves are not allowed */
    bool by_precision; /* the default is hstep_scaler_defaults' */
    bool command_line_only;
    bool free;       /* another value at a resume changes no number of the run */
    bool of_command; /* says what this command does, not what its run is */
    const hs_choice *choices;
} hs_option;

/* Choices that tables of other commands have, too. */
extern const hs_choice hs_precision_choices[], hs_backend_choices[], hs_token_type_choices[];

/* The table, and how many rows it has. */
const hs_option *hs_option_table(size_t *count);

/* The row of that name, or NULL. */
const hs_option *hs_option_find(const char *name);

static inline void *hs_option_target(const hs_option *option, hs_options *options) {
    return (char *)options + option->offset;
}

static inline const void *hs_option_value(const hs_option *option, const hs_options *options) {
    return (const char *)options + option->offset;
}

/* The name of a choice's current value. */
const char *hs_option_choice_name(const hs_option *option, int value);

/* The scaler default that a by_precision option takes. */
double hs_option_scaler_default(const hs_option *option, hstep_precision precision, char *text, size_t size);

/*
 * Storing one value, with the checks of its row. On a refusal `why` says what would be right, in a phrase that follows
 * "VALUE: ", or the value was right and there is no memory for it; the target is untouched.
 */
typedef struct hs_refusal {
    bool no_memory;
    char why[160];
} hs_refusal;

/* At the place itself, which is of the kind's type; a text of several is added to the others. */
bool hs_option_put_text(const hs_option *option, const char *text, void *target, hs_refusal *refusal);

bool hs_option_store_text(const hs_option *option, const char *text, hs_source source, hs_options *options,
                          hs_refusal *refusal);
bool hs_option_store_count(const hs_option *option, uint64_t value, hs_options *options, hs_refusal *refusal);
bool hs_option_store_real(const hs_option *option, double value, hs_options *options, hs_refusal *refusal);

/* A value of --config or of a checkpoint. */
bool hs_option_store_json(const hs_option *option, const json_t *value, hs_source source, hs_options *options,
                          hs_refusal *refusal);

/* Reads arguments 1.. of the command and the configuration file they may name. Returns HS_EXIT_DONE or reports. */
int hs_options_parse(int argc, char **argv, hs_options *options);

/* Reads --config FILE: a JSON object whose keys are options. Returns HS_EXIT_DONE or reports. */
int hs_options_read_config(const char *path, hs_options *options);

/* Options that contradict each other. Returns HS_EXIT_DONE or reports. */
int hs_options_check(const hs_options *options);

/* Refuses a device that is named for another backend than Vulkan. Returns HS_EXIT_DONE or reports. */
int hs_options_check_device(const char *command, const char *device, int backend);

void hs_options_help(FILE *out);

/* One line or more for each row of a table, under the headings of their groups. */
void hs_option_print_help(FILE *out, const hs_option *table, size_t count);

void hs_options_free(hs_options *options);

#endif
