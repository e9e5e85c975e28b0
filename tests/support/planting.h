/*
 * A backend around another that plants an infinity at one call of a training program: in an operand before the
 * call, so that the kernel itself must notice, or in the first output after it. A program is recognised by its length.
 */
#ifndef HS_TESTS_SUPPORT_PLANTING_H
#define HS_TESTS_SUPPORT_PLANTING_H

#include "engine/backend.h"

typedef enum hs_plant_place { HS_PLANT_NOWHERE, HS_PLANT_OPERAND, HS_PLANT_OUTPUT } hs_plant_place;

/* Shared by all the backends of one test. */
typedef struct hs_plant {
    hs_plant_place place;
    size_t calls;     /* length of the programs that are meant */
    size_t call;      /* which of their calls */
    size_t operand;   /* which operand, for HS_PLANT_OPERAND */
    size_t skip_runs; /* so many runs of that call stay clean first */
    size_t seen;      /* runs of that call so far on backends that do not locate */
} hs_plant;

/* The new backend owns `inner` and reads *plant while it runs. */
hs_backend *hs_planting_backend_create(hs_backend *inner, hs_plant *plant);

#endif
