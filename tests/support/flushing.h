/*
 * The reference as it computes on a processor that takes subnormals for zeros, read or made: what a device gives that
 * flushes them. Cells that no subnormal has a part in have the ordinary reference's bits.
 */
#ifndef HS_TESTS_SUPPORT_FLUSHING_H
#define HS_TESTS_SUPPORT_FLUSHING_H

#include "engine/backend.h"

/* Fails the running test where this processor cannot be told to flush. */
hs_backend *hs_test_flushing_reference(void);

#endif
