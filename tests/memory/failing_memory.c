#include "memory/failing_memory.h"

#include <jansson.h>
#include <stdlib.h>
#include <xxhash.h>

hs_test_memory hs_test_memory_state;

/* The linker puts the first of each pair in the place of the function, and the function in that of the second. */
void *__wrap_malloc(size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_realloc(void *old, size_t size);
void __wrap_free(void *block);
void __real_free(void *block);
XXH3_state_t *__wrap_XXH3_createState(void);
XXH3_state_t *__real_XXH3_createState(void);

static bool fails(void) {
    hs_test_memory *memory = &hs_test_memory_state;
    if (!memory->counting)
        return false;
    memory->calls++;
    const bool failing = memory->fails_at != 0 && (memory->calls == memory->fails_at ||
                                                   (memory->from_there && memory->calls > memory->fails_at));
    memory->failed |= failing;
    return failing;
}

static void *count(void *block) {
    hs_test_memory_state.live += hs_test_memory_state.counting && block != NULL;
    return block;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : count(__real_malloc(size)); }

void *__wrap_calloc(size_t number, size_t size) { return fails() ? NULL : count(__real_calloc(number, size)); }

void *__wrap_realloc(void *old, size_t size) {
    if (fails())
        return NULL;
    void *block = __real_realloc(old, size);
    return old == NULL ? count(block) : block;
}

void __wrap_free(void *block) {
    hs_test_memory_state.live -= hs_test_memory_state.counting && block != NULL;
    __real_free(block);
}

/* The shared library's own, which frees it too. */
XXH3_state_t *__wrap_XXH3_createState(void) { return fails() ? NULL : __real_XXH3_createState(); }

void hs_test_memory_start(size_t fails_at, bool from_there) {
    json_set_alloc_funcs(__wrap_malloc, __wrap_free);
    hs_test_memory_state = (hs_test_memory){.counting = true, .fails_at = fails_at, .from_there = from_there};
}

void hs_test_memory_stop(void) { hs_test_memory_state.counting = false; }
