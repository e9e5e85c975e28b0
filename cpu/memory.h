/* Memory of buffers and scratch: zero-filled, and taken from the system only where it is touched. */
#ifndef HS_CPU_MEMORY_H
#define HS_CPU_MEMORY_H

#include <stddef.h>

/* Aligned to a cache line; 0 bytes are allowed. NULL where the system refuses. */
void *hs_memory_take(size_t bytes);

/* `bytes` as they were asked for; memory may be NULL. */
void hs_memory_give(void *memory, size_t bytes);

#endif
