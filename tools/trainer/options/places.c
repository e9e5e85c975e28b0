#include "trainer/options/places.h"

#include <stdlib.h>
#include <string.h>

#include <halfstep/model.h>

#include "trainer/exit.h"
#include "trainer/report.h"

/* One rule out of a list: the characters up to the next comma, without blanks around them. */
typedef struct piece {
    const char *text;
    size_t length;
} piece;

static int refuse(const char *command, const char *path, piece what, const char *why) {
    if (path == NULL)
        return hs_report_usage(command, "--precision-for '%.*s': %s", (int)what.length, what.text, why);
    hs_report("checkpoint '%s': its option precision-for, '%.*s': %s", path, (int)what.length, what.text, why);
    return HS_EXIT_INPUT;
}

static piece trim(const char *text, size_t length) {
    const size_t blanks = strspn(text, " ") < length ? strspn(text, " ") : length;
    text += blanks;
    length -= blanks;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return (piece){text, length};
}

/* Fills *rule, or says what is wrong. */
static const char *read_rule(piece from, hstep_precision_rule *rule) {
    if (from.length == 0)
        return "an exception is empty: give NAME=PRECISION, such as head=f64, and no comma too many, or none";
    const char *equals = memchr(from.text, '=', from.length);
    if (equals == NULL)
        return "give NAME=PRECISION, such as head=f64, or several with commas between them, or none";
    const piece name = trim(from.text, (size_t)(equals - from.text));
    const piece precision = trim(equals + 1, from.length - (size_t)(equals + 1 - from.text));
    char word[16];
    if (name.length == 0)
        return "no name stands before the '=': give the name of an operation, such as head, or a pattern of names";
    if (name.length >= sizeof rule->pattern)
        return "its name is longer than any operation's";
    snprintf(word, sizeof word, "%.*s", (int)precision.length, precision.text);
    *rule = (hstep_precision_rule){.precision = HSTEP_PRECISION_F64};
    memcpy(rule->pattern, name.text, name.length);
    return precision.length < sizeof word && hstep_precision_parse(word, &rule->precision) == HSTEP_OK
               ? NULL
               : "behind the '=' give one of bf16, fp16, f64";
}

static int add_rule(hs_options *options, const char *command, const char *path, piece from) {
    hstep_precision_rule *rules = realloc(options->rules, (options->rule_count + 1) * sizeof *rules);
    if (rules == NULL)
        return hs_report_no_memory();
    options->rules = rules;
    const char *wrong = read_rule(from, &rules[options->rule_count]);
    if (wrong != NULL)
        return refuse(command, path, from, wrong);
    ++options->rule_count;
    return HS_EXIT_DONE;
}

static int read_text(hs_options *options, const char *command, const char *path, const char *text) {
    if (strcmp(text, "none") == 0) {
        options->rule_count = 0;
        return HS_EXIT_DONE;
    }
    int status = HS_EXIT_DONE;
    for (const char *at = text; status == HS_EXIT_DONE; ++at) {
        const size_t length = strcspn(at, ",");
        status = add_rule(options, command, path, trim(at, length));
        at += length;
        if (*at == '\0')
            break;
    }
    return status;
}

/* What is in use, for rules that fit; else *error says what does not. */
static hstep_status find_in_use(hs_options *options, hstep_product *products, size_t *count, hstep_error *error) {
    /* The products' names depend on the number of layers and on nothing else. */
    hstep_decoder_config decoder = hstep_decoder_defaults();
    decoder.vocabulary = decoder.heads = decoder.feed_forward = 1;
    decoder.width = 2;
    decoder.layers = options->layers;
    decoder.precision = (hstep_precision)options->precision;
    decoder.rules = options->rules;
    decoder.rule_count = options->rule_count;
    const hstep_status status = hstep_decoder_products(&decoder, products, *count, count, error);
    if (status == HSTEP_OK && products != NULL) {
        memset(options->in_use, 0, sizeof options->in_use);
        for (size_t i = 0; i < *count; ++i)
            options->in_use[products[i].precision] = true;
    }
    return status;
}

int hs_places_read(hs_options *options, const char *command, const char *path) {
    const hs_texts *texts = &options->precision_for;
    hstep_error error = {0};
    size_t count = 0;
    int status = HS_EXIT_DONE;
    options->rule_count = 0;
    for (size_t i = 0; i < texts->count && status == HS_EXIT_DONE; ++i)
        status = read_text(options, command, path, texts->items[i]);
    if (status != HS_EXIT_DONE)
        return status;
    hstep_status found = find_in_use(options, NULL, &count, &error);
    if (found == HSTEP_OK) {
        hstep_product *products = calloc(count, sizeof *products);
        if (products == NULL)
            return hs_report_no_memory();
        found = find_in_use(options, products, &count, &error);
        free(products);
    }
    if (found == HSTEP_ERROR_ARGUMENT && texts->count > 0) {
        const char *last = texts->items[texts->count - 1];
        return refuse(command, path, (piece){last, strlen(last)}, error.message);
    }
    return found == HSTEP_OK ? HS_EXIT_DONE : hs_report_error(&error);
}

void hs_places_clear(hs_options *options, hstep_precision precision) {
    options->precision = (int)precision;
    options->rule_count = 0;
    memset(options->in_use, 0, sizeof options->in_use);
    options->in_use[precision] = true;
}

hstep_precision hs_places_scaled(const hs_options *options) {
    return options->in_use[HSTEP_PRECISION_FP16]   ? HSTEP_PRECISION_FP16
           : options->in_use[HSTEP_PRECISION_BF16] ? HSTEP_PRECISION_BF16
                                                   : HSTEP_PRECISION_F64;
}

void hs_places_describe(const hs_options *options, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s", hstep_precision_name((hstep_precision)options->precision));
    for (size_t i = 0; i < options->rule_count && used < size; ++i) {
        const char *name = hstep_precision_name(options->rules[i].precision);
        used += (size_t)snprintf(text + used, size - used, ", %s=%.*s", options->rules[i].pattern,
                                 (int)strcspn(name, "-"), name);
    }
}
