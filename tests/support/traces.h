/* Statistics of attempts, for tests: a model whose numbers can be worked out by hand, and traces that outlive theirs.
 */
#ifndef HS_TESTS_SUPPORT_TRACES_H
#define HS_TESTS_SUPPORT_TRACES_H

#include "support/models.h"

/* second = (first * 2^-18) w2, first = x w1, both in fp16; the loss is the sum of second. */
enum { HS_TEST_TRACED_ROWS = 5 };
#define HS_TEST_TRACED_FACTOR 0x1p-18
#define HS_TEST_TRACED_SCALE 512.0
extern const double hs_test_traced_x[HS_TEST_TRACED_ROWS * 3], hs_test_traced_w1[12], hs_test_traced_w2[8];
hs_test_run hs_test_traced_run_create_in(hstep_context *context);
hstep_batch hs_test_traced_batch(void);

/* A context on one thread without numbers in 16 bits. */
hstep_context *hs_test_wide_context(void);

const hstep_operand_trace *hs_test_find_row(const hstep_trace *trace, const char *operation, const char *tensor,
                                            int is_adjoint);

/* Copies that stay when the trainer and its model are gone; names are copied too. */
typedef struct hs_test_kept_trace {
    hstep_tensor_trace *tensors;
    hstep_operand_trace *operands;
    size_t tensor_count, operand_count;
} hs_test_kept_trace;

/* Keeps the trainer's last trace, in the place of what was kept before. */
void hs_test_keep_trace(const hstep_trainer *trainer, hs_test_kept_trace *kept);
void hs_test_free_trace(hs_test_kept_trace *kept);
void hs_test_expect_same_trace(const hs_test_kept_trace *a, const hs_test_kept_trace *b);

bool hs_test_same_update(const hstep_update *a, const hstep_update *b);

#endif
