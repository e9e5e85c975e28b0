/* A trained model, from a checkpoint. */
#ifndef HS_TRAINER_LOAD_H
#define HS_TRAINER_LOAD_H

#include <halfstep/halfstep.h>

#include "trainer/options/options.h"

/* How it is to compute, whatever it was trained with. */
typedef struct hs_model_choices {
    int precision;          /* hstep_precision, everywhere; -1: as it was trained */
    hs_texts precision_for; /* exceptions, in place of those it was trained with */
    int backend;            /* hstep_backend */
    const char *device;     /* "any", or which; NULL: any */
    uint64_t threads;
    const char *levers;
} hs_model_choices;

typedef struct hs_loaded_model {
    hs_options options; /* of the run that it comes from, with the choices in their places */
    size_t vocabulary;
    bool is_text; /* its tokens are those of the byte vocabulary */
    hstep_context *context;
    hstep_model *model;
} hs_loaded_model;

/* The file that a path stands for: a file for itself, a folder for its newest good checkpoint. Reports as below. */
int hs_model_find(const char *path, char *file, size_t size);

/* How many tokens a checkpoint's model knows: its embedding says it. Reports as below. */
int hs_model_vocabulary(const char *path, size_t *vocabulary);

/* Refuses options of a checkpoint that do not describe a model. Reports as below. */
int hs_model_check_options(const char *path, const hs_options *options);

/*
 * `path` is a checkpoint, or a folder, of which the newest one that verifies is taken. Returns HS_EXIT_DONE or reports;
 * hs_model_unload in either case.
 */
int hs_model_load(const char *command, const char *path, const hs_model_choices *choices, hs_loaded_model *loaded);

void hs_model_unload(hs_loaded_model *loaded);

#endif
