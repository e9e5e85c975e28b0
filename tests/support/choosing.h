/* Levers chosen on a tier with one that is made for tests. */
#ifndef HS_TESTS_SUPPORT_CHOOSING_H
#define HS_TESTS_SUPPORT_CHOOSING_H

#include "engine/levers/levers.h"
#include "support/planted.h"

/* For suites: everything happens in an empty folder that is also the user's cache directory. hs_test_leave_folder ends
 * it. */
void hs_test_enter_cache(void);

/* A depth in bf16 and one in f64, so that no large vocabulary is tried. */
extern const hstep_product_depth hs_test_depths[2];

typedef struct hs_test_chosen {
    hs_backend *backend;
    hs_lever_table table;
    const hstep_lever *lever; /* the planted one */
    hstep_status status;
    hstep_error error;
} hs_test_chosen;

hs_test_chosen *hs_test_choose_with(hs_planted planted, unsigned threads, const hs_lever_request *request);

/* On one thread, with hs_test_depths to come. */
hs_test_chosen *hs_test_choose(hs_planted planted, const char *selection);

void hs_test_release(hs_test_chosen *chosen);

const hstep_lever *hs_test_find_lever(const hs_test_chosen *chosen, const char *name);

/* The place of a lever in the list of any backend, which must have it. */
size_t hs_test_lever_index(const hs_backend *backend, const char *name);

/* Whether the selection is refused with that status and a message that has the word in it. */
void hs_test_expect_refusal(hs_planted planted, const char *selection, hstep_status status, const char *word);

#endif
