#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */

#include "cpu/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From MAPPED on memory is mapped, so that untouched pages cost nothing; from LARGE on at a multiple of a huge page. */
enum { ALIGNMENT = 64, MAPPED = 128 << 10, HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

static unsigned char *map(size_t bytes) {
    void *const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* Maps more than is wanted and cuts off what stands before and behind. */
static void *map_aligned(size_t bytes) {
    unsigned char *const mapped = map(bytes + HUGE_PAGE);
    if (!mapped)
        return NULL;
    const size_t before = (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0)
        (void)munmap(mapped, before);
    (void)munmap(mapped + before + bytes, HUGE_PAGE - before);
    /* Where it is refused, small pages do. */
    (void)madvise(mapped + before, bytes, MADV_HUGEPAGE);
    return mapped + before;
}

/* Pages are at most 64 KiB on the systems this runs on, and cuts must stand between pages. */
static size_t mapped_bytes(size_t bytes) {
    enum { PAGE = 64 << 10 };
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *take_from_system(size_t bytes) {
    if (bytes > PTRDIFF_MAX - 2 * HUGE_PAGE)
        return NULL;
    if (bytes >= MAPPED)
        return bytes >= LARGE ? map_aligned(mapped_bytes(bytes)) : map(mapped_bytes(bytes));
    const size_t room = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *const memory = aligned_alloc(ALIGNMENT, room);
    if (memory)
        memset(memory, 0, room);
    return memory;
}

static void give_to_system(void *memory, size_t bytes) {
    if (bytes >= MAPPED && memory)
        (void)munmap(memory, mapped_bytes(bytes));
    else
        free(memory);
}

/* An allocator is asked for 1 byte where none is wanted: what there is has to have a place. */
static size_t asked_for(size_t bytes) { return bytes > 0 ? bytes : 1; }

void *hs_memory_take(const hstep_allocator *allocator, size_t bytes) {
    if (!allocator)
        return take_from_system(bytes);
    void *const memory = allocator->allocate(asked_for(bytes), ALIGNMENT, allocator->user);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void hs_memory_give(const hstep_allocator *allocator, void *memory, size_t bytes) {
    if (!allocator)
        give_to_system(memory, bytes);
    else if (memory)
        allocator->release(memory, asked_for(bytes), allocator->user);
}
