/* The model on the text "ab" that the parts share, on the reference backend (docs/demonstration.md). */
#ifndef HS_TRAINER_DEMONSTRATION_FIXTURE_H
#define HS_TRAINER_DEMONSTRATION_FIXTURE_H

#include <halfstep/halfstep.h>

enum { HS_FIXTURE_TOKENS = 3, HS_FIXTURE_VOCABULARY = 258, HS_FIXTURE_WIDTH = 4 };

typedef struct hs_fixture {
    hstep_context *context;
    hstep_model *model;
    hstep_trainer *trainer;
    hstep_batch batch;
    hstep_error error; /* of the call that failed last */
} hs_fixture;

/* On failure nothing is left to destroy but the fixture itself, whose error says why. */
hstep_status hs_fixture_create(hs_fixture *fixture, hstep_precision precision, const hstep_scaler *scaler);

void hs_fixture_destroy(hs_fixture *fixture);

hstep_status hs_fixture_update(hs_fixture *fixture, hstep_update *update);

#endif
