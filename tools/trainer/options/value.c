/* Storing one value of one option: strict about its text, its range and its kind. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/options/options.h"
#include "trainer/report.h"

static bool refuse(hs_refusal *refusal, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(hs_refusal *refusal, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(refusal->why, sizeof refusal->why, format, arguments);
    va_end(arguments);
    refusal->no_memory = false;
    return false;
}

const char *hs_option_choice_name(const hs_option *option, int value) {
    for (const hs_choice *choice = option->choices; choice->name != NULL; ++choice)
        if (choice->value == value)
            return choice->name;
    return "";
}

double hs_option_scaler_default(const hs_option *option, hstep_precision precision, char *text, size_t size) {
    const hs_options defaults = {.scaler = hstep_scaler_defaults(precision)};
    const void *value = hs_option_value(option, &defaults);
    const double number = option->kind == HS_OPTION_COUNT ? (double)*(const uint64_t *)value : *(const double *)value;
    snprintf(text, size, "%s", hs_digits_of(number).text);
    return number;
}

static bool inside(const hs_option *option, double value) {
    return (option->above ? value > option->minimum : value >= option->minimum) &&
           (option->below ? value < option->maximum : value <= option->maximum);
}

static bool refuse_range(const hs_option *option, hs_refusal *refusal) {
    return refuse(refusal, "give a number %s %s and %s %s", option->above ? "above" : "of at least",
                  hs_digits_of(option->minimum).text, option->below ? "below" : "at most",
                  hs_digits_of(option->maximum).text);
}

static bool put_count(const hs_option *option, uint64_t value, void *target, hs_refusal *refusal) {
    if (!inside(option, (double)value))
        return refuse_range(option, refusal);
    *(uint64_t *)target = value;
    return true;
}

static bool put_real(const hs_option *option, double value, void *target, hs_refusal *refusal) {
    if (!inside(option, value))
        return refuse_range(option, refusal);
    *(double *)target = value;
    return true;
}

/* A value that would do, for a message: the default, unless it is the 0 that stands for something else. */
static bool refuse_form(const hs_option *option, const char *kind, const char *without_default, hs_refusal *refusal) {
    const char *example = option->initial != NULL ? option->initial : without_default;
    if (strcmp(example, "0") == 0)
        return refuse(refusal, "give a %s of at least %s", kind, hs_digits_of(option->minimum).text);
    return refuse(refusal, "give a %s of at least %s, such as %s", kind, hs_digits_of(option->minimum).text, example);
}

static bool put_count_text(const hs_option *option, const char *text, void *target, hs_refusal *refusal) {
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != '\0')
        return refuse_form(option, "whole number", "2000", refusal);
    /* Records and configuration files hold whole numbers up to 2^63 - 1. */
    if (errno == ERANGE || value > INT64_MAX)
        return refuse_range(option, refusal);
    return put_count(option, value, target, refusal);
}

static bool put_real_text(const hs_option *option, const char *text, void *target, hs_refusal *refusal) {
    char *end;
    const double value = strtod(text, &end);
    if (!(isdigit((unsigned char)text[0]) || text[0] == '.' || text[0] == '-') || *end != '\0')
        return refuse_form(option, "number", "128", refusal);
    return put_real(option, value, target, refusal);
}

static bool put_choice(const hs_option *option, const char *text, void *target, hs_refusal *refusal) {
    char names[100] = "";
    int count = 0;
    for (const hs_choice *choice = option->choices; choice->name != NULL; ++choice) {
        if (strcmp(choice->name, text) == 0) {
            *(int *)target = choice->value;
            return true;
        }
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", count++ == 0 ? "" : ", ", choice->name);
    }
    return refuse(refusal, "give %s%s", count == 1 ? "" : "one of ", names);
}

static bool append_text(hs_texts *texts, const char *text, hs_refusal *refusal) {
    const char **items = realloc(texts->items, (texts->count + 1) * sizeof *items);
    if (items == NULL) {
        *refusal = (hs_refusal){.no_memory = true};
        return false;
    }
    texts->items = items;
    texts->items[texts->count++] = text;
    return true;
}

bool hs_option_put_text(const hs_option *option, const char *text, void *target, hs_refusal *refusal) {
    switch (option->kind) {
    case HS_OPTION_FLAG:
        *(bool *)target = true;
        return true;
    case HS_OPTION_COUNT:
        return put_count_text(option, text, target, refusal);
    case HS_OPTION_REAL:
        return put_real_text(option, text, target, refusal);
    case HS_OPTION_CHOICE:
        return put_choice(option, text, target, refusal);
    case HS_OPTION_TEXT:
        if (text[0] == '\0')
            return refuse(refusal, "give at least one character");
        *(const char **)target = text;
        return true;
    case HS_OPTION_TEXTS:
        return append_text(target, text, refusal);
    }
    return false;
}

/* ---- Into the options of a run ---- */

bool hs_option_store_count(const hs_option *option, uint64_t value, hs_options *options, hs_refusal *refusal) {
    return put_count(option, value, hs_option_target(option, options), refusal);
}

bool hs_option_store_real(const hs_option *option, double value, hs_options *options, hs_refusal *refusal) {
    return put_real(option, value, hs_option_target(option, options), refusal);
}

/* The first text of a stronger source replaces the list of a weaker one; further ones are added. */
bool hs_option_store_text(const hs_option *option, const char *text, hs_source source, hs_options *options,
                          hs_refusal *refusal) {
    size_t rows;
    const size_t place = (size_t)(option - hs_option_table(&rows));
    void *target = hs_option_target(option, options);
    if (option->kind == HS_OPTION_TEXTS && options->sources[place] < source)
        ((hs_texts *)target)->count = 0;
    if (!hs_option_put_text(option, text, target, refusal))
        return false;
    options->sources[place] = source;
    return true;
}
