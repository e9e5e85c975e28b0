/*
 * The processor as a backend, in two tables of kernels that share memory and bookkeeping (the files of this folder) and
 * nothing else: the reference (cpu/reference: plain loops, one thread, the oracle) and the threaded one, of exact
 * kernels (cpu/exact: blocked and vectorised, with the reference's bits) and gated ones (cpu/gated) that have to be
 * switched on.
 */
#ifndef HS_CPU_CPU_H
#define HS_CPU_CPU_H

#include "engine/backend.h"

hstep_status hs_cpu_reference_create(hs_backend **backend, hstep_error *error);

/* threads: 0 for as many as the process may run on. */
hstep_status hs_cpu_create(unsigned threads, hs_backend **backend, hstep_error *error);

/* Takes memory from there, in the place of the system; before anything else is asked of a new backend. */
void hs_cpu_use_allocator(hs_backend *backend, const hstep_allocator *allocator);

/*
 * For tests and benchmarks: of the levers that need a certain processor only `lever` is used, such as "cpu.avx2"; none
 * with "cpu.portable". HSTEP_ERROR_BACKEND_UNAVAILABLE where this processor lacks it.
 */
hstep_status hs_cpu_create_with_lever(unsigned threads, const char *lever, hs_backend **backend, hstep_error *error);

#endif
