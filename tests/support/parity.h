/*
 * Holds the exact tier against the reference: the same call on both, with every lever that this processor offers and at
 * several thread counts, must give the same bits and the same nonfinite flag, and must leave inputs and surroundings
 * alone. Compact operands are compact for the exact tier alone.
 *
 * Intended usage: open, check as many descriptions as wanted, close. A difference fails the running test and says
 * where.
 */
#ifndef HS_TESTS_SUPPORT_PARITY_H
#define HS_TESTS_SUPPORT_PARITY_H

#include "support/calls.h"

/* The levers that change how the exact tier computes, the portable one first. */
enum { HS_TEST_LEVERS = 4, HS_TEST_THREADS = 3 };
extern const char *const hs_test_levers[HS_TEST_LEVERS];

/* The exact tier with one lever, or NULL where this processor lacks it. */
hs_backend *hs_test_exact(unsigned threads, const char *lever);

/* Plans on the exact tier keep f64 slots from here on. */
void hs_test_leave_compact_out(hs_backend *backend);

typedef struct hs_parity {
    hs_backend *reference, *exact[HS_TEST_LEVERS][HS_TEST_THREADS]; /* 1, 2 and 3 threads; NULL without the lever */
    hs_backend *flushing; /* the reference without subnormals, where the device flushes them; NULL: it keeps them */
    const char *only;     /* another backend than the exact tier, in the first place; NULL: the exact tier */
    size_t calls, raised; /* calls compared, and how many of them raised the flag */
} hs_parity;

typedef enum hs_parity_depth {
    HS_PARITY_ORDINARY, /* ordinary data: for the largest shapes */
    HS_PARITY_BRIEF,    /* and special data */
    HS_PARITY_FULL,     /* and every other fill, and two whose products are subnormal in f32 and in f64 */
    HS_PARITY_PLANTED   /* and one infinity or NaN at a time in each operand */
} hs_parity_depth;

void hs_parity_open(hs_parity *parity);

/*
 * The same for a backend that is not the exact tier; it is closed along. Where it is a device that flushes subnormals,
 * a cell, or the flag, may be as the reference has it on a processor that flushes them: no tolerance but that.
 */
void hs_parity_open_on(hs_parity *parity, hs_backend *backend);
void hs_parity_close(hs_parity *parity);
void hs_parity_check(hs_parity *parity, const hs_test_description *description, hs_parity_depth depth);

/* A call whose values the test has set itself. `what` says which, should it fail. */
void hs_parity_compare(hs_parity *parity, const hs_test_call *call, const char *what);

/* Whether the products inside an operation depend on the precision. */
bool hs_parity_has_products(hs_operation operation);

/* Whether the precision of a call matters, and whether anything can raise its flag. */
bool hs_parity_heeds_precision(hs_operation operation);
bool hs_parity_can_flag(hs_operation operation);

#endif
