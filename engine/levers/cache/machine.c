#include "engine/levers/cache/machine.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <xxhash.h>

/* Fields of x86, then of ARM. Those with long lists of features count by their checksum. */
static const struct {
    const char *name;
    bool list;
} fields[] = {{"vendor_id", false}, {"cpu family", false},   {"model", false},
              {"stepping", false},  {"flags", true},         {"CPU implementer", false},
              {"CPU part", false},  {"CPU revision", false}, {"Features", true}};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* The value of a line "name<blanks>: value" if it has that name. */
static const char *value_of(const char *line, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(line, name, length) != 0)
        return NULL;
    const char *colon = line + length + strspn(line + length, " \t");
    return *colon == ':' ? colon + 1 + strspn(colon + 1, " \t") : NULL;
}

static void add_field(const char *line, size_t *used, char text[HS_MACHINE]) {
    for (size_t i = 0; i < FIELDS && *used < HS_MACHINE; i++) {
        const char *value = value_of(line, fields[i].name);
        const char *separator = *used > 0 ? " " : "";
        if (value == NULL)
            continue;
        const int length = (int)strcspn(value, "\n"), room = HS_MACHINE - (int)*used;
        const int added = fields[i].list ? snprintf(text + *used, (size_t)room, "%sfeatures %016" PRIx64, separator,
                                                    (uint64_t)XXH3_64bits(value, (size_t)length))
                                         : snprintf(text + *used, (size_t)room, "%s%.24s %.*s", separator,
                                                    fields[i].name, length, value);
        *used += (size_t)added;
    }
}

/* Those of the first processor; a line of features may be long. */
void hs_machine_describe(FILE *listing, char text[HS_MACHINE]) {
    char line[16384];
    size_t used = 0;
    while (listing != NULL && fgets(line, sizeof line, listing) != NULL && line[0] != '\n')
        add_field(line, &used, text);
    if (used == 0)
        (void)snprintf(text, HS_MACHINE, "unknown processor");
}

void hs_lever_machine(const hs_backend *backend, const char *identity, char text[HS_LEVER_MACHINE]) {
    char processor[HS_MACHINE];
    FILE *listing = fopen("/proc/cpuinfo", "r");
    hs_machine_describe(listing, processor);
    if (listing != NULL)
        (void)fclose(listing);
    (void)snprintf(text, HS_LEVER_MACHINE, "%s; %s; %s", backend->api->device(backend), processor, identity);
}
