/*
 * Memory of buffers and scratch: zero-filled, and taken from the system only where it is touched, or from a program's
 * own functions.
 */
#ifndef HS_CPU_MEMORY_H
#define HS_CPU_MEMORY_H

#include <stddef.h>

#include <halfstep/context.h>

/* Aligned to a cache line; 0 bytes are allowed. NULL where there is none. `allocator`: NULL for the system. */
void *hs_memory_take(const hstep_allocator *allocator, size_t bytes);

/* `bytes` as they were asked for; memory may be NULL. */
void hs_memory_give(const hstep_allocator *allocator, void *memory, size_t bytes);

#endif
