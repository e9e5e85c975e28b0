/*
 * How many f32 operations a second one thread does at most here: fused multiply-adds on registers, in chains enough to
 * hide their latency. Prints one line of JSON. This is the roof over every f32 product; matrix units and 16-bit dot
 * products have one of their own.
 */
#include <stdio.h>
#include <time.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { CHAINS = 12, ROUNDS = 4000000 };

#ifdef __x86_64__
__attribute__((target("avx512f"))) static float run_avx512(float factor) {
    __m512 sums[CHAINS], x = _mm512_set1_ps(factor), y = _mm512_set1_ps(0.25F);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], x, y);
    for (int i = 1; i < CHAINS; i++)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) static float run_avx2(float factor) {
    __m256 sums[CHAINS], x = _mm256_set1_ps(factor), y = _mm256_set1_ps(0.25F);
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm256_set1_ps((float)i);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], x, y);
    for (int i = 1; i < CHAINS; i++)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    return _mm256_cvtss_f32(sums[0]);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several, in GFLOP/s. Processor time, so that other work on the machine counts little. */
static double measure(float (*run)(float), int lanes) {
    double best = 0.0;
    volatile float factor = 0.5F, sink = 0.0F; /* volatile: or the compiler computes it all beforehand */
    for (int repeat = 0; repeat < 5; repeat++) {
        const double start = now();
        sink = run(factor);
        const double rate = 2.0 * lanes * CHAINS * ROUNDS / (now() - start) / 1e9;
        best = rate > best ? rate : best;
    }
    (void)sink;
    return best;
}

#endif

int main(void) {
    const char *set = "none";
    double gflops = 0.0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        set = "avx512f";
        gflops = measure(run_avx512, 16);
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        set = "avx2";
        gflops = measure(run_avx2, 8);
    }
#endif
    printf("{\"instructions\":\"%s\",\"gflops\":%.1f}\n", set, gflops);
    return gflops > 0.0 ? 0 : 1;
}
