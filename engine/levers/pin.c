#include "engine/levers/pin.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

static const char SCHEMA[] = "halfstep.lever-set/1";

static json_t *pack_lever(const hstep_lever *lever, const char *identity) {
    if (lever->exact)
        return json_pack("{s:s}", "name", lever->name);
    return json_pack("{s:s, s:s}", "name", lever->name, "identity", identity);
}

char *hs_pin_write(const char *backend, const hs_lever_table *table) {
    json_t *levers = json_array();
    bool whole = true;
    for (size_t i = 0; i < table->count; i++)
        if (table->levers[i].state == HSTEP_LEVER_ACTIVE)
            whole = json_array_append_new(levers, pack_lever(&table->levers[i], table->identities[i])) == 0 && whole;
    json_t *root = json_pack("{s:s, s:s, s:o}", "schema", SCHEMA, "backend", backend, "levers", levers);
    char *text = root != NULL && whole ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

bool hs_pin_is(const char *selection) { return selection != NULL && selection[0] == '{'; }

/* ---- Reading ---- */

static hstep_status refuse(hstep_error *error) {
    return hs_fail(error, HSTEP_ERROR_ARGUMENT,
                   "levers: the text of a pinned set is damaged; give it as it was written, or choose auto or exact");
}

static hstep_status require(const json_t *pinned, const hs_backend *backend, hs_wishes *wishes, hstep_error *error) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    const char *name = json_string_value(json_object_get(pinned, "name")),
               *identity = json_string_value(json_object_get(pinned, "identity"));
    size_t i = 0;
    if (name == NULL)
        return refuse(error);
    while (i < count && strcmp(levers[i].name, name) != 0)
        i++;
    HS_RETURN_IF(i == count, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "levers: the pinned set uses %.60s, which this version has not; choose auto or exact to go on without",
                 name);
    if (wishes->wish[i] == HS_WISH_REQUIRED || (identity == NULL) != (levers[i].exact != 0))
        return refuse(error);
    wishes->wish[i] = HS_WISH_REQUIRED;
    if (identity != NULL)
        (void)snprintf(wishes->identities[i], HS_LEVER_IDENTITY, "%s", identity);
    return HSTEP_OK;
}

static hstep_status parse(const json_t *root, const hs_backend *backend, hs_wishes *wishes, hstep_error *error) {
    const char *schema = json_string_value(json_object_get(root, "schema")),
               *name = json_string_value(json_object_get(root, "backend"));
    const json_t *levers = json_object_get(root, "levers");
    if (schema == NULL || strcmp(schema, SCHEMA) != 0 || name == NULL || !json_is_array(levers))
        return refuse(error);
    HS_RETURN_IF(strcmp(name, backend->api->name) != 0, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "levers: the pinned set was chosen on the backend %.60s, and this is %s; choose that backend", name,
                 backend->api->name);
    for (size_t i = 0; i < json_array_size(levers); i++)
        HS_FORWARD(require(json_array_get(levers, i), backend, wishes, error));
    return HSTEP_OK;
}

hstep_status hs_pin_parse(const char *text, const hs_backend *backend, hs_wishes *wishes, hstep_error *error) {
    *wishes = (hs_wishes){.pinned = true};
    for (size_t i = 0; i < HS_MAX_LEVERS; i++)
        wishes->wish[i] = hs_lever_is_fallback(backend, i) ? HS_WISH_AUTO : HS_WISH_LEFT_OUT;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const hstep_status status = parse(root, backend, wishes, error);
    json_decref(root);
    return status;
}
