/*
 * Products of a device's gated lever in fp16 against a scalar emulator of its order, bit for bit: the sums, what they
 * are rounded to, and the flag.
 */
#ifndef HS_TESTS_SUPPORT_DEVICE_PRODUCT_H
#define HS_TESTS_SUPPORT_DEVICE_PRODUCT_H

#include "engine/levers/levers.h"
#include "support/calls.h"

/* The sum of one cell over k = 0..steps-1; a and b are the bits of the operands. */
typedef float hs_device_emulator(size_t steps, const uint16_t *a, const uint16_t *b);

/* What looking for a lever finds. */
hs_lever_findings hs_device_find(const hs_backend *backend, const char *name);

/* A device that has cooperative matrices of f16, or the running test is skipped. */
hs_backend *hs_device_with_matrices(void);

/* A selection for products in fp16 of a depth that is quickly judged; `anew`: no kept verdict counts. */
hstep_status hs_device_choose(hs_backend *backend, const char *selection, bool anew, hs_lever_table *table,
                              hstep_error *error);

/* Uses it, whatever its speed, and no other gated one. */
void hs_device_use(hs_backend *backend, const char *name);

/* Many shapes, forms, ways of storage and kinds of numbers, infinities, NaNs and subnormals among them. Returns how
 * many cells were compared. */
size_t hs_device_check_products(hs_backend *backend, hs_device_emulator *emulator);

/*
 * From now on the driver makes other pipelines of the gated levers for fp16 than the backend asks for; each test is a
 * process of its own. The faults: the form of the left operand is taken for the other; results are rounded to
 * bf16.
 */
typedef enum hs_device_fault { HS_DEVICE_CROSSED, HS_DEVICE_MISROUNDED } hs_device_fault;
void hs_device_plant(hs_backend *backend, hs_device_fault fault);

/* Plants it and judges what the selection leaves: the lever of that name, which has to be rejected. */
hs_lever_table hs_device_reject(hs_backend *backend, const char *selection, const char *name, hs_device_fault fault);

#endif
