#define _GNU_SOURCE /* dladdr, sched_getaffinity, MAP_ANONYMOUS */

#include "cpu/gated/openblas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cpu/processor.h"

/*
 * OpenBLAS asks for the memory of a buffer again and again, without an end, where the system has none. So the room is
 * tried first. No version has had larger buffers than half of this; a thread of its own has a stack besides.
 */
#define BUFFER_ROOM ((size_t)256 << 20)

static const char NO_ROOM[] =
    "there is no address space for OpenBLAS, which would wait for it forever: raise the limit (ulimit -v), or use "
    "fewer threads";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t reserving = PTHREAD_MUTEX_INITIALIZER;
static hs_openblas library;
static bool loaded, without_room;
static unsigned reserved; /* buffers that the library holds already */

/* ISO C has no conversion from the address of an object to that of a function; POSIX lets the bytes be copied. */
static bool find(void *handle, const char *name, void *function) {
    void *const address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* Whether so much memory could be had just now. */
static bool has_room(size_t bytes) {
    void *const room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room != MAP_FAILED && munmap(room, bytes) == 0;
}

/* When it is loaded it starts a thread for each processor but one, and each takes a buffer. */
static bool has_room_to_load(void) {
    void *const there = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (there != NULL)
        return dlclose(there) == 0;
    cpu_set_t set;
    const int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : HS_OPENBLAS_MOST_CALLERS;
    return has_room((size_t)processors * BUFFER_ROOM);
}

static void load(void) {
    without_room = !has_room_to_load();
    void *const handle = without_room ? NULL : dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return;
    loaded = find(handle, "cblas_dgemm", &library.dgemm) && find(handle, "openblas_get_corename", &library.core) &&
             find(handle, "openblas_get_config", &library.config) &&
             find(handle, "openblas_get_num_threads", &library.threads) &&
             find(handle, "openblas_set_num_threads", &library.set_threads);
    if (!find(handle, "blas_memory_alloc", &library.take) || !find(handle, "blas_memory_free", &library.give_back))
        library.take = NULL;
    /* A build with 64-bit integers has the same name and other arguments. */
    loaded = loaded && strstr(library.config(), "USE64BITINT") == NULL;
}

const hs_openblas *hs_openblas_load(void) { return pthread_once(&once, load) == 0 && loaded ? &library : NULL; }

hstep_lever_state hs_openblas_detect(void) {
    return hs_openblas_load() != NULL ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_ABSENT;
}

/* Makes the library take `count` buffers at once; it keeps them for products to come. */
static bool reserve(unsigned count) {
    void *buffers[HS_OPENBLAS_MOST_CALLERS];
    unsigned taken = 0;
    for (bool room = true; taken < count && room; taken += room) {
        room = taken < reserved || has_room(BUFFER_ROOM);
        if (room)
            buffers[taken] = library.take(0);
    }
    for (unsigned i = 0; i < taken; i++)
        library.give_back(buffers[i]);
    reserved = taken > reserved ? taken : reserved;
    return taken == count;
}

const char *hs_openblas_refusal(unsigned threads) {
    if (hs_openblas_load() == NULL)
        return without_room ? NO_ROOM : NULL;
    const unsigned count = threads < HS_OPENBLAS_MOST_CALLERS ? threads : HS_OPENBLAS_MOST_CALLERS;
    (void)pthread_mutex_lock(&reserving);
    const bool room = library.take != NULL ? reserve(count) : has_room(count * BUFFER_ROOM);
    (void)pthread_mutex_unlock(&reserving);
    return room ? NULL : NO_ROOM;
}

static bool is_one_of(const char *name, const char *const *names) {
    while (*names != NULL && strcasecmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/*
 * OpenBLAS chooses its kernels by the processor's number, and takes slow ones for a number that it does not know. It
 * reads OPENBLAS_CORETYPE when it is loaded, too early for a library that is already running to set it.
 */
void hs_openblas_remark(const char *core, bool avx2, bool avx512, char *text, size_t size) {
    static const char *const with_avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids", NULL};
    static const char *const with_avx2[] = {"Haswell", "Zen", "Excavator", NULL};
    text[0] = '\0';
    if (is_one_of(core, with_avx512) || !avx2 || (!avx512 && is_one_of(core, with_avx2)))
        return;
    (void)snprintf(text, size, "its kernels %s leave %s of this processor unused: start with OPENBLAS_CORETYPE=%s",
                   core, avx512 ? "AVX-512" : "AVX2", avx512 ? "SkylakeX" : "Haswell");
}

/* Which file the library was really loaded from, and which state of it. */
static void describe_file(const hs_openblas *blas, char *text, size_t size) {
    const void *address;
    Dl_info info;
    struct stat file;
    memcpy(&address, &blas->dgemm, sizeof address);
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL && stat(info.dli_fname, &file) == 0)
        (void)snprintf(text, size, "%lld bytes of %lld.%09ld in %s", (long long)file.st_size,
                       (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, info.dli_fname);
    else
        (void)snprintf(text, size, "a file that cannot be found");
}

void hs_openblas_describe(hs_lever_findings *findings) {
    const hs_openblas *blas = hs_openblas_load();
    if (blas == NULL)
        return;
    char file[300];
    describe_file(blas, file, sizeof file);
    (void)snprintf(findings->reason, sizeof findings->reason, "OpenBLAS dgemm, kernels %s", blas->core());
    (void)snprintf(findings->identity, sizeof findings->identity, "%.150s, kernels %.40s, %s", blas->config(),
                   blas->core(), file);
    hs_openblas_remark(blas->core(), hs_detect_avx2() == HSTEP_LEVER_ACTIVE, hs_detect_avx512() == HSTEP_LEVER_ACTIVE,
                       findings->remark, sizeof findings->remark);
}
