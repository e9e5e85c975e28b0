/* What long runs have to say about a lever, kept and taken back. */
#include <string.h>

#include "engine/context.h"
#include "engine/error.h"
#include "engine/levers/cache/cache.h"
#include "engine/levers/cache/machine.h"

/* What a gated lever's rejection on this machine is kept under. */
static hstep_status find_machine(hstep_context *context, const char *name, char machine[HS_LEVER_MACHINE],
                                 hstep_error *error) {
    HS_RETURN_IF(context == NULL || name == NULL, error, HSTEP_ERROR_ARGUMENT, "no context or no lever was given");
    hs_backend *backend = context->backend;
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    size_t lever = 0;
    while (lever < count && strcmp(levers[lever].name, name) != 0)
        lever++;
    HS_RETURN_IF(lever == count || backend->api->lever_find == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "the backend %s has no lever '%.80s'; hstep_context_levers lists them", backend->api->name, name);
    HS_RETURN_IF(levers[lever].exact, error, HSTEP_ERROR_ARGUMENT,
                 "the lever %s is exact: other bits than the reference's are a fault of this library", name);
    hs_lever_findings findings = {0};
    backend->api->lever_find(backend, lever, &findings);
    hs_lever_machine(backend, findings.identity, machine);
    return HSTEP_OK;
}

hstep_status hstep_context_reject_lever(hstep_context *context, const char *lever, const char *reason,
                                        hstep_error *error) {
    char machine[HS_LEVER_MACHINE];
    HS_RETURN_IF(reason == NULL, error, HSTEP_ERROR_ARGUMENT, "no reason was given");
    HS_FORWARD(find_machine(context, lever, machine, error));
    HS_RETURN_IF(!hs_cache_reject(lever, machine, reason), error, HSTEP_ERROR_OUTPUT_FILE,
                 "that the lever %s is wrong here could not be kept in the user's cache directory", lever);
    return HSTEP_OK;
}

hstep_status hstep_context_clear_rejection(hstep_context *context, const char *lever, int *cleared,
                                           hstep_error *error) {
    char machine[HS_LEVER_MACHINE];
    bool found = false;
    HS_RETURN_IF(cleared == NULL, error, HSTEP_ERROR_ARGUMENT, "no place for the answer");
    HS_FORWARD(find_machine(context, lever, machine, error));
    HS_RETURN_IF(!hs_cache_clear_rejection(lever, machine, &found), error, HSTEP_ERROR_OUTPUT_FILE,
                 "the rejection of %s could not be removed from the user's cache directory", lever);
    *cleared = found;
    return HSTEP_OK;
}
