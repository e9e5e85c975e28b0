/*
 * Words for the rows of a table of options. Who includes this has defined HS_SETTINGS, the struct that the options are
 * stored in.
 */
#ifndef HS_TRAINER_ROWS_H
#define HS_TRAINER_ROWS_H

#include <stddef.h>

/* Sizes beyond this are typing errors; what is too large for the machine is refused when memory is asked for. */
#define HS_MANY 1048576

#define TARGET(field) .offset = offsetof(HS_SETTINGS, field)
#define COUNT(field, least, most) TARGET(field), .kind = HS_OPTION_COUNT, .minimum = least, .maximum = most
#define REAL(field, least, most) TARGET(field), .kind = HS_OPTION_REAL, .minimum = least, .maximum = most
#define CHOICE(field, list) TARGET(field), .kind = HS_OPTION_CHOICE, .choices = list
#define TEXT(field) TARGET(field), .kind = HS_OPTION_TEXT
#define TEXTS(field) TARGET(field), .kind = HS_OPTION_TEXTS
#define FLAG(field) TARGET(field), .kind = HS_OPTION_FLAG

/* Rows that several commands have; what follows the target are the members in which they differ. */
#define BACKEND_ROW(field, ...)                                                                                        \
    { .name = "backend", CHOICE(field, hs_backend_choices), .argument = "B", __VA_ARGS__ }
#define DEVICE_ROW(field, ...)                                                                                         \
    { .name = "device", TEXT(field), .argument = "D", __VA_ARGS__ }
#define THREADS_ROW(field, ...)                                                                                        \
    { .name = "threads", COUNT(field, 0, 1024), .argument = "N", __VA_ARGS__ }
#define LEVERS_ROW(field, ...)                                                                                         \
    { .name = "levers", TEXT(field), .argument = "SET", __VA_ARGS__ }

#define DEVICE_HELP                                                                                                    \
    "Of --backend vulkan: a number, from 0, or a part of a device's name; any: the one that promises most"

/* How a trained model computes: rows for the hs_model_choices `model`. */
#define MODEL_ROWS(model)                                                                                              \
    {.name = "precision",                                                                                              \
     .group = "Run",                                                                                                   \
     CHOICE(model.precision, hs_precision_choices),                                                                    \
     .argument = "P",                                                                                                  \
     .help = "How matrix products round; without it: as in training"},                                                 \
        {.name = "precision-for",                                                                                      \
         .group = "Run",                                                                                               \
         TEXTS(model.precision_for),                                                                                   \
         .argument = "LIST",                                                                                           \
         .help = "Precision by place, as in trainer train; without it and --precision: as in training"},               \
        BACKEND_ROW(model.backend, .group = "Run", .initial = "auto", .help = "What computes"),                        \
        DEVICE_ROW(model.device, .group = "Run", .initial = "any", .help = DEVICE_HELP),                               \
        THREADS_ROW(model.threads, .group = "Run", .initial = "0",                                                     \
                    .help = "Processor threads; 0: as many as the process may use"),                                   \
        LEVERS_ROW(model.levers, .group = "Run", .initial = "exact",                                                   \
                   .help = "Faster ways to compute, as in trainer train")

#endif
