#include "trainer/inspect/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/exit.h"
#include "trainer/inspect/kinds.h"
#include "trainer/model/load.h"
#include "trainer/options/words.h"
#include "trainer/report.h"

/* The first that recognises a file says what is in it. */
static const hs_inspect_kind *const kinds[] = {&hs_inspect_tensors, &hs_inspect_records, &hs_inspect_data};

static void help(FILE *out) {
    fputs("Usage: trainer inspect [OPTION...] FILE\n\n"
          "Says what is in a file: a checkpoint or another safetensors file, the records of a run, a token shard, or\n"
          "text. Every byte of it is read and checked. The folder of a run stands for its newest good checkpoint.\n\n"
          "  --json           one JSON object\n"
          "  --token-type T   how a shard without a header holds its tokens: auto, bytes, uint16, uint32 [auto]\n"
          "  --help           this text\n\n"
          "Exit status: 0 done; 2 usage; 3 a file that cannot be read or is damaged, with file and byte offset.\n",
          out);
}

typedef struct settings {
    bool json, help;
    hs_inspection inspection;
    char in_folder[HS_PATH_ROOM]; /* the file, where a folder was named */
} settings;

static int read_token_type(const char *text, hstep_token_type *type) {
    for (int t = HSTEP_TOKENS_AUTO; t <= HSTEP_TOKENS_UINT32; ++t) {
        if (strcmp(text, hstep_token_type_name((hstep_token_type)t)) == 0) {
            *type = (hstep_token_type)t;
            return HS_EXIT_DONE;
        }
    }
    return hs_report_usage("inspect", "--token-type %s%s%s: give one of auto, bytes, uint16, uint32",
                           hs_report_mark(text), text, hs_report_mark(text));
}

/* The option at argv[*i], with its value where it has one. */
static int read_option(int argc, char **argv, int *i, settings *s) {
    static const char *const names[] = {"json", "token-type", "help"};
    const char *value = NULL, *word = argv[*i];
    if (hs_word_names(word, "json", &value) && value == NULL) {
        s->json = true;
    } else if (hs_word_names(word, "help", &value) && value == NULL) {
        s->help = true;
    } else if (value != NULL) {
        return hs_report_usage("inspect", "option '%.*s' takes no value", (int)strcspn(word, "="), word);
    } else if (hs_word_names(word, "token-type", &value)) {
        if (value == NULL && *i + 1 == argc)
            return hs_report_usage("inspect", "option '--token-type' needs a value: auto, bytes, uint16 or uint32");
        return read_token_type(value != NULL ? value : argv[++*i], &s->inspection.token_type);
    } else {
        return hs_report_unknown_option("inspect", word, names, sizeof names / sizeof names[0], "check its spelling");
    }
    return HS_EXIT_DONE;
}

static int parse(int argc, char **argv, settings *s) {
    bool words_only = false;
    for (int i = 1; i < argc; ++i) {
        if (!words_only && strcmp(argv[i], "--") == 0) {
            words_only = true;
        } else if (!words_only && hs_word_is_option(argv[i])) {
            const int status = read_option(argc, argv, &i, s);
            if (status != HS_EXIT_DONE)
                return status;
        } else if (s->inspection.path != NULL) {
            return hs_report_usage("inspect", "unexpected word '%s': one file at a time", argv[i]);
        } else {
            s->inspection.path = argv[i];
        }
    }
    return s->help || s->inspection.path != NULL ? HS_EXIT_DONE
                                                 : hs_report_usage("inspect", "no file: name the one to look at");
}

static int refuse(const char *path, const char *reason) {
    hs_report("cannot read '%s': %s", path, reason);
    return HS_EXIT_INPUT;
}

/* A folder stands for its newest good checkpoint, and what is found says which that is. */
static int find_in_folder(settings *s, json_t *found) {
    struct stat status;
    if (stat(s->inspection.path, &status) != 0 || !S_ISDIR(status.st_mode))
        return HS_EXIT_DONE;
    const int result = hs_model_find(s->inspection.path, s->in_folder, sizeof s->in_folder);
    s->inspection.path = s->in_folder;
    json_object_set_new(found, "file", json_string(s->in_folder));
    return result;
}

static int read_head(hs_inspection *inspection) {
    struct stat status;
    if (stat(inspection->path, &status) != 0)
        return refuse(inspection->path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse(inspection->path, "it is no file: name one");
    FILE *file = fopen(inspection->path, "rb");
    if (file == NULL)
        return refuse(inspection->path, strerror(errno));
    inspection->head_size = fread(inspection->head, 1, sizeof inspection->head, file);
    const int reason = ferror(file) ? errno : 0;
    fclose(file);
    return reason == 0 ? HS_EXIT_DONE : refuse(inspection->path, strerror(reason));
}

/* Text from a file may hold what a terminal would obey. */
static bool is_plain(const char *text) {
    for (; *text != '\0'; ++text)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static void print_value(FILE *out, const json_t *value) {
    if (json_is_string(value) && is_plain(json_string_value(value)))
        fputs(json_string_value(value), out);
    else if (json_is_real(value))
        fputs(hs_digits_of(json_real_value(value)).text, out);
    else if (json_is_null(value))
        fputs("-", out);
    else
        json_dumpf(value, out, JSON_ENCODE_ANY);
}

/* The column at which values stand: behind the longest name, and never before the 25th. */
static int value_column(const char *prefix, json_t *object) {
    int column = 24;
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        const int inner = json_is_object(value) ? value_column(name, value)
                          : prefix[0] != '\0'   ? (int)(strlen(prefix) + strlen(name)) + 3
                                                : (int)strlen(name) + 2;
        column = inner > column ? inner : column;
    }
    return column;
}

/* Words in place of the underscores of a name. */
static void print_name(FILE *out, const char *prefix, const char *name, int column) {
    char text[80];
    snprintf(text, sizeof text, "%s%s%s:", prefix, prefix[0] != '\0' ? "." : "", name);
    for (char *c = strchr(text, '_'); c != NULL; c = strchr(c, '_'))
        *c = ' ';
    fprintf(out, "%-*s", column, text);
}

/* One element of an array of objects: its values on a line, the first in a column of its own. */
static void print_row(FILE *out, json_t *row) {
    const char *name;
    json_t *value;
    bool first = true;
    json_object_foreach(row, name, value) {
        fputs("  ", out);
        if (first && json_is_string(value) && is_plain(json_string_value(value)) && json_object_size(row) > 1)
            fprintf(out, "%-44s", json_string_value(value));
        else
            print_value(out, value);
        first = false;
    }
}

/* Objects and sentences get lines of their own. */
static void print_array(FILE *out, json_t *array) {
    size_t i;
    json_t *element;
    if (json_array_size(array) == 0)
        fputc('-', out);
    json_array_foreach(array, i, element) {
        if (json_is_object(element)) {
            fputc('\n', out);
            print_row(out, element);
        } else if (json_is_string(element) && strchr(json_string_value(element), ' ') != NULL) {
            fputs("\n  ", out);
            print_value(out, element);
        } else {
            fputs(i == 0 ? "" : " ", out);
            print_value(out, element);
        }
    }
}

static void print_object(FILE *out, const char *prefix, json_t *object, int column) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        if (json_is_object(value)) {
            print_object(out, name, value, column);
            continue;
        }
        print_name(out, prefix, name, column);
        if (json_is_array(value))
            print_array(out, value);
        else
            print_value(out, value);
        fputc('\n', out);
    }
}

static int describe(settings *s, json_t *found) {
    size_t k = 0;
    while (!kinds[k]->recognizes(&s->inspection))
        ++k;
    json_object_set_new(found, "kind", json_string(kinds[k]->name));
    hstep_error error = {0};
    const hstep_status status = kinds[k]->describe(&s->inspection, found, &error);
    if (status != HSTEP_OK && json_array_size(json_object_get(found, "problems")) == 0)
        return hs_report_error(&error);
    if (s->json && (json_dumpf(found, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) != 0 || puts("") == EOF))
        return HS_EXIT_OUTPUT;
    if (!s->json)
        print_object(stdout, "", found, value_column("", found));
    return status == HSTEP_OK ? HS_EXIT_DONE : hs_report_error(&error);
}

int hs_inspect(int argc, char **argv) {
    settings s = {.json = false};
    int status = parse(argc, argv, &s);
    if (status == HS_EXIT_DONE && s.help) {
        help(stdout);
        return HS_EXIT_DONE;
    }
    if (status != HS_EXIT_DONE)
        return status;
    json_t *found = json_object();
    if (found == NULL)
        return hs_report_no_memory();
    status = find_in_folder(&s, found);
    if (status == HS_EXIT_DONE)
        status = read_head(&s.inspection);
    if (status == HS_EXIT_DONE)
        status = describe(&s, found);
    json_decref(found);
    return status;
}
