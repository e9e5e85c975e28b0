/*
 * Allocations that fail. A test program that is linked with this file (tests/CMakeLists.txt) has its own
 * calls of malloc and the like, those of the static library and Jansson's counted here, and can make any of them fail.
 */
#ifndef HS_TESTS_MEMORY_FAILING_MEMORY_H
#define HS_TESTS_MEMORY_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hs_test_memory {
    bool counting;   /* otherwise calls pass unseen */
    size_t calls;    /* allocations so far */
    size_t fails_at; /* this one fails, counted from 1; 0: none */
    bool from_there; /* and all that follow */
    bool failed;
    ptrdiff_t live; /* blocks allocated less blocks freed */
} hs_test_memory;

extern hs_test_memory hs_test_memory_state;

/* Starts counting, also Jansson's allocations. Blocks that are freed later must have been allocated while counting. */
void hs_test_memory_start(size_t fails_at, bool from_there);

void hs_test_memory_stop(void);

#endif
