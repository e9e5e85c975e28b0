#include "trainer/train/records/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hstep_setting hs_setting_of(const hs_option *option, const hs_options *options, const char *texts) {
    const void *value = hs_option_value(option, options);
    hstep_setting setting = {.name = option->name};
    switch (option->kind) {
    case HS_OPTION_FLAG:
        setting.kind = HSTEP_SETTING_BOOLEAN;
        setting.boolean = *(const bool *)value;
        break;
    case HS_OPTION_COUNT:
        setting.kind = HSTEP_SETTING_INTEGER;
        setting.integer = *(const uint64_t *)value;
        break;
    case HS_OPTION_REAL:
        setting.kind = HSTEP_SETTING_NUMBER;
        setting.number = *(const double *)value;
        break;
    case HS_OPTION_CHOICE:
        setting.kind = HSTEP_SETTING_TEXT;
        setting.text = hs_option_choice_name(option, *(const int *)value);
        break;
    case HS_OPTION_TEXT:
        setting.kind = HSTEP_SETTING_TEXT;
        setting.text = *(const char *const *)value;
        break;
    case HS_OPTION_TEXTS:
        setting.kind = HSTEP_SETTING_TEXT;
        setting.text = texts;
        break;
    }
    return setting;
}

bool hs_texts_join(const hs_texts *texts, const char *between, char **joined) {
    *joined = NULL;
    if (texts->count == 0)
        return true;
    size_t size = 1, used = 0;
    for (size_t i = 0; i < texts->count; ++i)
        size += strlen(between) + strlen(texts->items[i]);
    *joined = calloc(1, size);
    for (size_t i = 0; i < texts->count && *joined != NULL; ++i)
        used += (size_t)snprintf(*joined + used, size - used, "%s%s", i == 0 ? "" : between, texts->items[i]);
    return *joined != NULL;
}
