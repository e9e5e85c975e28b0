/*
 * Calls that must fail and leave what they were given as it was. A test puts all places for results into hs_test_out,
 * which is filled with a pattern; hs_test_refuses makes the call with an error and with NULL in the place of `e`, and
 * compares the status, what the error says, every byte of hs_test_out, and the state of what is watched.
 */
#ifndef HS_TESTS_SUPPORT_UNTOUCHED_H
#define HS_TESTS_SUPPORT_UNTOUCHED_H

#include <halfstep/halfstep.h>

#include <stddef.h>

/* A place of every kind that public functions write to. */
typedef struct hs_test_places {
    hstep_context *context;
    hstep_graph *graph;
    hstep_model *model;
    hstep_trainer *trainer;
    hstep_decoding *decoding;
    hstep_dataset *dataset;
    hstep_records *records;
    hstep_tensor_file *file;
    hstep_device *devices;
    hstep_value value;
    hstep_dtype dtype;
    hstep_precision precision;
    hstep_storage storage;
    hstep_parameter parameter;
    hstep_update update;
    hstep_explanation explanation;
    hstep_data_file data_file;
    hstep_data_position position;
    hstep_found_checkpoint found;
    hstep_skipped_checkpoint skipped[2];
    hstep_export_report report;
    hstep_checkpoint_state state;
    hstep_difference differences[2];
    hstep_comparison comparison;
    hstep_tensor_info tensor;
    hstep_trace trace;
    hstep_product products[2];
    hstep_gate_case judged;
    double *pointer;
    const double *first, *second;
    double loss, sum, weight, numbers[64], others[64];
    int32_t tokens[64], targets[64];
    uint16_t bits[64];
    int64_t dims[HSTEP_MAX_RANK];
    uint64_t checksum;
    size_t size, count, rank;
    int cleared;
    char text[512];
} hs_test_places;

extern hs_test_places hs_test_out;

/* Fills hs_test_out with the pattern. Fields that a function reads too are set after it. */
void hs_test_out_fill(void);

/* From now on calls must also leave this trainer with its model, and this graph, as they are. NULL: none. */
void hs_test_watch(hstep_trainer *trainer, hstep_graph *graph);

/* The bookkeeping around one call. */
void hs_test_before_call(hstep_error *error);
void hs_test_after_call(hstep_status expected, hstep_status status, const hstep_error *error, const char *call,
                        int line);

/* In the place of the latter, after a call that succeeded where it might have failed. */
void hs_test_forget_call(void);

/* `call` names its error `e`. */
#define hs_test_refuses(expected, call)                                                                                \
    do {                                                                                                               \
        hstep_error told_;                                                                                             \
        hstep_error *e = &told_;                                                                                       \
        hs_test_before_call(e);                                                                                        \
        hs_test_after_call((expected), (call), e, #call, __LINE__);                                                    \
        e = NULL;                                                                                                      \
        hs_test_before_call(e);                                                                                        \
        hs_test_after_call((expected), (call), e, #call, __LINE__);                                                    \
    } while (0)

#endif
