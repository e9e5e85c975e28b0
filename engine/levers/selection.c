#include "engine/levers/selection.h"

#include <stdio.h>
#include <string.h>

#include "engine/levers/pin.h"

/* The names of all levers of a backend, for messages. */
static void list_names(const hs_backend *backend, char *text, size_t size) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", levers[i].name);
    }
}

static hstep_status refuse_word(const hs_backend *backend, const char *word, size_t length, hstep_error *error) {
    char names[256];
    list_names(backend, names, sizeof names);
    return hs_fail(error, HSTEP_ERROR_ARGUMENT,
                   "levers: '%.*s' is none of them; give auto, exact, none, or a list of +NAME and -NAME with commas. "
                   "The backend %s has %s; others go with other backends",
                   (int)(length < 40 ? length : 40), word, backend->api->name, names);
}

bool hs_lever_is_fallback(const hs_backend *backend, size_t lever) {
    const hstep_lever *levers;
    if (backend->api->lever_facts == NULL || lever >= backend->api->levers(backend, &levers))
        return false;
    hs_lever_facts facts;
    backend->api->lever_facts(backend, lever, &facts);
    return facts.fallback;
}

static hstep_status parse_item(const char *item, size_t length, const hs_backend *backend, hs_wish *wishes,
                               hstep_error *error) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    size_t lever = 0;
    while (lever < count && (length != strlen(levers[lever].name) + 1 || length == 0 ||
                             strncmp(item + 1, levers[lever].name, length - 1) != 0))
        lever++;
    if (lever == count || (item[0] != '+' && item[0] != '-'))
        return refuse_word(backend, item, length, error);
    HS_RETURN_IF(wishes[lever] != HS_WISH_AUTO, error, HSTEP_ERROR_ARGUMENT, "levers: %s is named twice",
                 levers[lever].name);
    HS_RETURN_IF(item[0] == '-' && hs_lever_is_fallback(backend, lever), error, HSTEP_ERROR_ARGUMENT,
                 "levers: %s cannot be left out, it computes what no other lever does", levers[lever].name);
    wishes[lever] = item[0] == '+' ? HS_WISH_REQUIRED : HS_WISH_LEFT_OUT;
    return HSTEP_OK;
}

/* "auto", "exact" and "none"; NULL is "exact". */
static bool parse_word(const char *text, const hs_backend *backend, hs_wish *wishes) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    const bool none = text != NULL && strcmp(text, "none") == 0;
    const bool exact = text == NULL || none || strcmp(text, "exact") == 0;
    for (size_t i = 0; i < count && exact; i++)
        if (!levers[i].exact || (none && !hs_lever_is_fallback(backend, i)))
            wishes[i] = HS_WISH_LEFT_OUT;
    return exact || strcmp(text, "auto") == 0;
}

hstep_status hs_selection_parse(const char *text, const hs_backend *backend, hs_wishes *wishes, hstep_error *error) {
    if (hs_pin_is(text))
        return hs_pin_parse(text, backend, wishes, error);
    *wishes = (hs_wishes){0};
    for (size_t i = 0; i < HS_MAX_LEVERS; i++)
        wishes->wish[i] = HS_WISH_AUTO;
    bool more = !parse_word(text, backend, wishes->wish);
    while (more) {
        const size_t length = strcspn(text, ",");
        HS_FORWARD(parse_item(text, length, backend, wishes->wish, error));
        more = text[length] != '\0';
        text += length + 1;
    }
    return HSTEP_OK;
}
