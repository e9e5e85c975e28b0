#include "trainer/train/records/changes.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/checkpoints/stored.h"
#include "trainer/exit.h"
#include "trainer/train/records/settings.h"

/* What an option was or is; none where nothing is stored of it. */
static bool setting_of(const hs_option *option, const hs_options *options, const json_t *stored, hs_changes *changes,
                       hstep_setting *setting) {
    char *joined = NULL;
    if (stored != NULL && option->kind == HS_OPTION_TEXTS) {
        const char *between = strcmp(option->name, "precision-for") == 0 ? "," : " + ";
        if (!hs_texts_join(hs_option_value(option, options), between, &joined))
            return false;
        changes->joined[changes->joined_count++] = joined;
    }
    *setting = stored != NULL ? hs_setting_of(option, options, joined)
                              : (hstep_setting){.name = option->name, .kind = HSTEP_SETTING_TEXT};
    return true;
}

/* An option that the run so far did not know, and nobody set, is no change. */
static bool is_change(const json_t *was, const json_t *is, hs_source source) {
    return !json_equal(was, is) && (was != NULL || (is != NULL && source != HS_SOURCE_DEFAULT));
}

static bool compare(const hs_option *option, const hs_options *options, hs_source source, hs_changes *changes) {
    const json_t *was = json_object_get(options->resumed.configuration, option->name);
    json_t *is = hs_stored_value(option, options);
    bool done = true;
    if (is_change(was, is, source)) {
        hstep_setting_change *change = &changes->items[changes->count++];
        done = setting_of(option, changes->before, was, changes, &change->before) &&
               setting_of(option, options, is, changes, &change->after);
    }
    json_decref(is);
    return done;
}

bool hs_changes_find(const hs_options *options, hs_changes *changes) {
    const hs_resumed *resumed = &options->resumed;
    size_t rows;
    const hs_option *table = hs_option_table(&rows);
    *changes = (hs_changes){.before = calloc(1, sizeof *changes->before)};
    bool found = changes->before != NULL &&
                 hs_stored_unpack(resumed->configuration, resumed->path, changes->before) == HS_EXIT_DONE;
    for (size_t i = 0; i < rows && found; ++i)
        found = compare(&table[i], options, options->sources[i], changes);
    if (!found)
        hs_changes_free(changes);
    return found;
}

void hs_changes_free(hs_changes *changes) {
    if (changes->before != NULL)
        hs_options_free(changes->before);
    free(changes->before);
    for (size_t i = 0; i < changes->joined_count; ++i)
        free(changes->joined[i]);
    *changes = (hs_changes){.count = 0};
}
