#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */

#include "cpu/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From LARGE on memory is mapped, so that untouched pages cost nothing, at a multiple of a huge page. */
enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

/* Maps more than is wanted and cuts off what stands before and behind. */
static void *map_aligned(size_t bytes) {
    const size_t wanted = bytes + HUGE_PAGE;
    unsigned char *const mapped =
        mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
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

void *hs_memory_take(size_t bytes) {
    if (bytes > PTRDIFF_MAX - 2 * HUGE_PAGE)
        return NULL;
    if (bytes >= LARGE)
        return map_aligned(mapped_bytes(bytes));
    const size_t room = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *const memory = aligned_alloc(ALIGNMENT, room);
    if (memory)
        memset(memory, 0, room);
    return memory;
}

void hs_memory_give(void *memory, size_t bytes) {
    if (bytes >= LARGE && memory)
        (void)munmap(memory, mapped_bytes(bytes));
    else
        free(memory);
}
