/* The plans of one owner, kept by graph, batch shape and purpose; the longest unused makes room. */
#ifndef HS_ENGINE_PLAN_CACHE_H
#define HS_ENGINE_PLAN_CACHE_H

#include "engine/plan/plan.h"

enum { HS_CACHED_PLANS = 8 };

typedef struct hs_plan_cache {
    hs_plan *plans[HS_CACHED_PLANS];
    uint64_t used[HS_CACHED_PLANS];
    uint64_t clock;
    hs_arena arena; /* of all of them */
} hs_plan_cache;

/* Finds the plan of that graph, mode and shape, or makes it. It stays the cache's, and valid until the next call. */
hstep_status hs_plan_cache_get(hs_plan_cache *cache, const hs_plan_request *request, hs_plan **plan,
                               hstep_error *error);

/* Drops the plans of a graph that comes to its end. */
void hs_plan_cache_forget(hs_plan_cache *cache, const hstep_graph *graph);

void hs_plan_cache_clear(hs_plan_cache *cache);

#endif
