#include "engine/plan/cache.h"

#include "engine/error.h"

static bool serves(const hs_plan *plan, const hs_plan_request *request) {
    return plan != NULL && plan->source == request->graph && plan->request.mode == request->mode &&
           plan->request.sequences == request->sequences && plan->request.length == request->length &&
           plan->request.measured == request->measured && plan->request.head_rows == request->head_rows;
}

static void drop(hs_plan_cache *cache, size_t i) {
    hs_plan_destroy(cache->plans[i]);
    cache->plans[i] = NULL;
    cache->used[i] = 0;
}

/* Plans that stand in an arena that is no more. */
static void drop_stale(hs_plan_cache *cache) {
    for (size_t i = 0; i < HS_CACHED_PLANS; i++)
        if (cache->plans[i] != NULL && cache->plans[i]->arena_generation != cache->arena.generation)
            drop(cache, i);
}

hstep_status hs_plan_cache_get(hs_plan_cache *cache, const hs_plan_request *request, hs_plan **plan,
                               hstep_error *error) {
    size_t oldest = 0, found = HS_CACHED_PLANS;
    for (size_t i = 0; i < HS_CACHED_PLANS; i++) {
        if (serves(cache->plans[i], request))
            found = i;
        if (cache->used[i] < cache->used[oldest])
            oldest = i;
    }
    if (found == HS_CACHED_PLANS) {
        hs_plan_request of_cache = *request;
        hs_plan *made = NULL;
        of_cache.arena = &cache->arena;
        const hstep_status status = hs_plan_create(&of_cache, &made, error);
        drop_stale(cache);
        HS_FORWARD(status);
        hs_plan_destroy(cache->plans[oldest]);
        cache->plans[oldest] = made;
        found = oldest;
    }
    cache->used[found] = ++cache->clock;
    *plan = cache->plans[found];
    return HSTEP_OK;
}

void hs_plan_cache_forget(hs_plan_cache *cache, const hstep_graph *graph) {
    for (size_t i = 0; i < HS_CACHED_PLANS; i++)
        if (cache->plans[i] != NULL && cache->plans[i]->source == graph)
            drop(cache, i);
}

void hs_plan_cache_clear(hs_plan_cache *cache) {
    for (size_t i = 0; i < HS_CACHED_PLANS; i++)
        hs_plan_destroy(cache->plans[i]);
    hs_arena_destroy(&cache->arena);
    *cache = (hs_plan_cache){0};
}
