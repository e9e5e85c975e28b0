/* `trainer train --help`, from the table. */
#include <string.h>

#include "trainer/options/options.h"

enum { COLUMN = 28, LINE = 80 };

/* Writes words from `column` on, in lines of at most LINE characters that begin at COLUMN. */
static void wrap(FILE *out, const char *text, int column) {
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");
        if (column + 1 + length > LINE) {
            fprintf(out, "\n%*s", COLUMN, "");
            column = COLUMN;
        } else if (column > COLUMN) {
            fputc(' ', out);
            ++column;
        }
        fprintf(out, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void describe_choices(const hs_option *option, char *text, size_t size) {
    for (const hs_choice *choice = option->choices; choice->name != NULL; ++choice) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", choice == option->choices ? ": " : ", ", choice->name);
    }
}

static void describe_default(const hs_option *option, char *text, size_t size) {
    const size_t used = strlen(text);
    if (option->builtin_initial != NULL) {
        snprintf(text + used, size - used, " [%s; without --data %s]", option->initial, option->builtin_initial);
    } else if (option->initial != NULL) {
        snprintf(text + used, size - used, " [%s]",
                 strcmp(option->initial, "\n") == 0 ? "a line end" : option->initial);
    } else if (option->by_precision) {
        char fp16[32], bf16[32], f64[32];
        hs_option_scaler_default(option, HSTEP_PRECISION_FP16, fp16, sizeof fp16);
        hs_option_scaler_default(option, HSTEP_PRECISION_BF16, bf16, sizeof bf16);
        hs_option_scaler_default(option, HSTEP_PRECISION_F64, f64, sizeof f64);
        if (strcmp(fp16, bf16) == 0 && strcmp(fp16, f64) == 0)
            snprintf(text + used, size - used, " [%s]", fp16);
        else
            snprintf(text + used, size - used, " [fp16 %s, bf16 %s, f64 %s]", fp16, bf16, f64);
    }
}

static void print_option(FILE *out, const hs_option *option) {
    char text[512];
    snprintf(text, sizeof text, "%s", option->help);
    if (option->choices != NULL)
        describe_choices(option, text + strlen(text), sizeof text - strlen(text));
    describe_default(option, text, sizeof text);
    const int column = fprintf(out, "  --%s%s%s", option->name, option->argument != NULL ? " " : "",
                               option->argument != NULL ? option->argument : "");
    fprintf(out, "%*s", column < COLUMN ? COLUMN - column : 1, "");
    wrap(out, text, column < COLUMN ? COLUMN : column + 1);
}

void hs_option_print_help(FILE *out, const hs_option *table, size_t count) {
    const char *group = "";
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(group, table[i].group) != 0)
            fprintf(out, "\n%s:\n", group = table[i].group);
        print_option(out, &table[i]);
    }
}

void hs_options_help(FILE *out) {
    fputs("Usage: trainer train [OPTION...]\n\n"
          "Trains a decoder on text and leaves a JSON record of every attempted update. Defaults stand in\n"
          "brackets.\n",
          out);
    size_t count;
    const hs_option *table = hs_option_table(&count);
    hs_option_print_help(out, table, count);
    fputs("\nExit status: 0 done; 1 numerical stop (diverged, or too many skips in a row); 2 usage; 3 bad input\n"
          "file; 4 could not write; 5 backend, device, memory or required lever unavailable; 130 interrupted.\n",
          out);
}
