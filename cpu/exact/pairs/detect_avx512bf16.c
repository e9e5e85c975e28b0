/* Whether vdpbf16ps is there, does what products count on, and is worth it: on some processors one instruction takes
 * four times as long as a fused multiply-add, which has half as much to do. */
#include <immintrin.h>
#include <pthread.h>
#include <time.h>

#include "cpu/exact/pairs/avx512bf16.h"
#include "cpu/processor.h"

enum { CHAINS = 12, STEPS = 200, REPEATS = 9, LANES = 16 };

/* How much longer it may take than a fused multiply-add. */
static const double WORTH_IT = 1.5;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hstep_lever_state state = HSTEP_LEVER_ABSENT;

static __m512bh pairs_of(float odd, float even) {
    const __m512i high = _mm512_castps_si512(_mm512_set1_ps(odd)), low = _mm512_castps_si512(_mm512_set1_ps(even));
    return (__m512bh)_mm512_or_si512(high, _mm512_srli_epi32(low, 16));
}

/* Numbers that tell the documented order from the other one and from sums that are rounded later. */
static bool keeps_its_order(void) {
    static const struct {
        float sum, odd, even, result;
    } cases[] = {{1.0F, -1.0F, 0x1p-30F, 0x1p-30F},
                 {1.0F, 0x1p-30F, -1.0F, 0.0F},
                 {1.0F, 0x1p-24F, 0x1p-24F, 1.0F},
                 {1.0F, 0x1p-24F, 0x1p-40F, 1.0F},
                 {1.0F, 0x1.8p-24F, 0x1p-24F, 0x1.000004p+0F}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float sums[LANES];
        _mm512_storeu_ps(sums, _mm512_dpbf16_ps(_mm512_set1_ps(cases[i].sum), pairs_of(1.0F, 1.0F),
                                                pairs_of(cases[i].odd, cases[i].even)));
        for (size_t lane = 0; lane < LANES; lane++)
            if (sums[lane] != cases[i].result)
                return false;
    }
    return true;
}

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Independent chains of one of the two instructions. The sums are looked at so that they are computed. */
static double time_of(const bool pairs, volatile float *seen) {
    __m512 s[CHAINS];
    const __m512 x = _mm512_set1_ps(*seen);
    const __m512bh y = pairs_of(*seen, *seen);
    for (int i = 0; i < CHAINS; i++)
        s[i] = x;
    const double start = seconds();
    for (int step = 0; step < STEPS; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            s[i] = pairs ? _mm512_dpbf16_ps(s[i], y, y) : _mm512_fmadd_ps(x, x, s[i]);
    }
    const double taken = seconds() - start;
    for (int i = 1; i < CHAINS; i++)
        s[0] = _mm512_add_ps(s[0], s[i]);
    *seen = _mm512_cvtss_f32(s[0]) * 0.0F;
    return taken;
}

/* The fastest of a few repeats, which nothing else disturbed. */
static bool is_worth_it(void) {
    volatile float seen = 0.0F;
    double best[2] = {1.0, 1.0};
    for (int repeat = 0; repeat < REPEATS; repeat++)
        for (int pairs = 0; pairs < 2; pairs++) {
            const double taken = time_of(pairs != 0, &seen);
            best[pairs] = taken < best[pairs] ? taken : best[pairs];
        }
    return best[1] < WORTH_IT * best[0];
}

static void find_out(void) {
    if (!hs_has_avx512bf16() || !keeps_its_order())
        return;
    state = is_worth_it() ? HSTEP_LEVER_ACTIVE : HSTEP_LEVER_SLOWER;
}

hstep_lever_state hs_detect_avx512bf16(void) {
    (void)pthread_once(&once, find_out);
    return state;
}
