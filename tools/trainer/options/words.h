/* The words of a command line: --NAME, --NAME=VALUE, or --NAME VALUE. Names are written out in full, so that an option
   which a later version adds changes the meaning of no command. */
#ifndef HS_TRAINER_WORDS_H
#define HS_TRAINER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the word begins like an option. A single dash does not. */
bool hs_word_is_option(const char *word);

/* Whether the word is the option of that name; *value is then what follows '=', or NULL. */
bool hs_word_names(const char *word, const char *name, const char **value);

/*
 * HS_EXIT_DONE where `next`, the word behind an option that has no '=', is its value. A usage error where there is none
 * (NULL), or where it is one of the `count` options itself: a value was forgotten, and what follows would be misread.
 */
int hs_word_check_value(const char *command, const char *option, const char *next, const char *const *names,
                        size_t count);

/*
 * A usage error for a word that is no option: names those of the `count` names that it may have meant, or says `advice`
 * where there is none. Returns HS_EXIT_USAGE.
 */
int hs_report_unknown_option(const char *command, const char *word, const char *const *names, size_t count,
                             const char *advice);

#endif
