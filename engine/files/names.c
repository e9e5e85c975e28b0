#include "engine/files/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/files/path.h"

typedef struct collector {
    bool (*wanted)(void *context, const char *name);
    void *context;
    hs_names *names;
    bool no_memory;
} collector;

static bool collect(void *context, const char *name) {
    collector *to = context;
    if (!to->wanted(to->context, name))
        return true;
    char **items = realloc(to->names->items, (to->names->count + 1) * sizeof *items);
    if (items != NULL) {
        to->names->items = items;
        items[to->names->count] = hs_format("%s", name);
    }
    to->no_memory = items == NULL || items[to->names->count] == NULL;
    to->names->count += !to->no_memory;
    return !to->no_memory;
}

hstep_status hs_names_read(const hs_files *files, const char *folder, bool (*wanted)(void *context, const char *name),
                           void *context, hs_names *names, hstep_error *error) {
    *names = (hs_names){0};
    collector to = {.wanted = wanted, .context = context, .names = names};
    const int listed = files->list(files->state, folder, collect, &to);
    const int reason = errno;
    if (listed == 0 && !to.no_memory)
        return HSTEP_OK;
    hs_names_free(names);
    if (to.no_memory)
        return hs_fail_memory(error, "the names in a folder");
    return hs_fail(error, HSTEP_ERROR_INPUT_FILE,
                   "folder '%s' cannot be listed: %s; name a folder that is there and may be read",
                   hs_show_path(folder).text, strerror(reason));
}

void hs_names_free(hs_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (hs_names){0};
}
