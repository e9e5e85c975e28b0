#include "trainer/options/words.h"

#include <stdio.h>
#include <string.h>

#include "trainer/exit.h"
#include "trainer/report.h"

bool hs_word_is_option(const char *word) { return word[0] == '-' && word[1] != '\0'; }

bool hs_word_names(const char *word, const char *name, const char **value) {
    const size_t length = strlen(name);
    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0)
        return false;
    const char *rest = word + 2 + length;
    if (*rest != '\0' && *rest != '=')
        return false;
    *value = *rest == '=' ? rest + 1 : NULL;
    return true;
}

int hs_word_check_value(const char *command, const char *option, const char *next, const char *const *names,
                        size_t count) {
    if (next == NULL)
        return hs_report_usage(command, "option '%s' needs a value", option);
    const char *value;
    for (size_t i = 0; i < count; ++i)
        if (hs_word_names(next, names[i], &value) && value == NULL)
            return hs_report_usage(command,
                                   "option '%s' needs a value, and '%s' is an option; a text that looks like one "
                                   "is given as %s=%s",
                                   option, next, option, next);
    return HS_EXIT_DONE;
}

int hs_report_unknown_option(const char *command, const char *word, const char *const *names, size_t count,
                             const char *advice) {
    const char *name = word + strspn(word, "-");
    const size_t length = strcspn(name, "=");
    char meant[200] = "";
    for (size_t i = 0; i < count && length > 0; ++i) {
        const size_t used = strlen(meant);
        if (strncmp(names[i], name, length) == 0)
            snprintf(meant + used, sizeof meant - used, "%s--%s", used == 0 ? "" : " or ", names[i]);
    }
    const int shown = (int)strcspn(word, "=");
    if (meant[0] == '\0')
        return hs_report_usage(command, "unknown option '%.*s': %s", shown, word, advice);
    return hs_report_usage(command, "unknown option '%.*s': did you mean %s? Options are written out in full", shown,
                           word, meant);
}
