/* The system's file operations, of which any single one can be made to fail. */
#ifndef HS_TESTS_SUPPORT_FAULTY_FILES_H
#define HS_TESTS_SUPPORT_FAULTY_FILES_H

#include "engine/files/files.h"

typedef struct hs_test_faults {
    size_t calls;    /* so far */
    size_t fails_at; /* this call fails, counted from 1; 0: none */
    bool from_there; /* and all that follow */
    int reason;      /* errno of the failure */
    bool piecemeal;  /* reads and writes move a few bytes at a time, and every other call is interrupted first */
    size_t interruptions;
    int open;           /* descriptors that are open */
    const char *failed; /* the operation that failed last */
    char log[256];      /* operations in their order, each run of equal ones once */
} hs_test_faults;

hs_files hs_test_faulty_files(hs_test_faults *faults);

#endif
