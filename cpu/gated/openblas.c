#include "cpu/gated/openblas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cpu/processor.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hs_openblas library;
static bool loaded;

/* ISO C has no conversion from the address of an object to that of a function; POSIX lets the bytes be copied. */
static bool find(void *handle, const char *name, void *function) {
    void *const address = dlsym(handle, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static void load(void) {
    void *const handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return;
    loaded = find(handle, "cblas_dgemm", &library.dgemm) && find(handle, "openblas_get_corename", &library.core) &&
             find(handle, "openblas_get_config", &library.config) &&
             (find(handle, "openblas_set_num_threads", &library.set_threads) ||
              find(handle, "goto_set_num_threads", &library.set_threads));
    /* A build with 64-bit integers has the same name and other arguments. */
    loaded = loaded && strstr(library.config(), "USE64BITINT") == NULL;
}

const hs_openblas *hs_openblas_load(void) { return pthread_once(&once, load) == 0 && loaded ? &library : NULL; }

hstep_lever_state hs_openblas_detect(void) {
    return hs_openblas_load() != NULL ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_ABSENT;
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

void hs_openblas_describe(hs_lever_findings *findings) {
    const hs_openblas *blas = hs_openblas_load();
    if (blas == NULL)
        return;
    (void)snprintf(findings->reason, sizeof findings->reason, "OpenBLAS dgemm, kernels %s", blas->core());
    (void)snprintf(findings->identity, sizeof findings->identity, "%s, kernels %s", blas->config(), blas->core());
    hs_openblas_remark(blas->core(), hs_detect_avx2() == HSTEP_LEVER_ACTIVE, hs_detect_avx512() == HSTEP_LEVER_ACTIVE,
                       findings->remark, sizeof findings->remark);
}
