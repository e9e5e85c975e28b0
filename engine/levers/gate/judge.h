/* The bounds that sums in another order have to keep (policy, section 7). */
#ifndef HS_ENGINE_LEVERS_GATE_JUDGE_H
#define HS_ENGINE_LEVERS_GATE_JUDGE_H

#include <stdbool.h>

#include <halfstep/levers.h>

/* One product of `count` cells, each of k products: what a kernel gave, and the reference's sums and sums of |p|. */
typedef struct hs_candidate {
    hstep_precision precision;
    size_t count, k;
    const double *reference, *magnitudes;
    const double *sums;
    const double *results; /* after the last rounding; NULL: they are not judged */
} hs_candidate;

/* Adds the figures to *c. The two metrics over all cells are among them where they decide. Whether all was within. */
bool hs_gate_judge(const hs_candidate *candidate, bool metrics, hstep_gate_case *c);

/* Takes over metrics that use up more of their limits than those of *worst. */
void hs_gate_widen_metrics(hstep_gate_case *worst, const hstep_gate_case *one);

#endif
