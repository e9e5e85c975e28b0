#include "trainer/compare/rows.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/exit.h"
#include "trainer/report.h"

enum { OURS, THEIRS, REFEREE, SIDES };

/* The files that are open, of one name. */
typedef struct opened {
    const hs_comparison_task *task;
    const char *name; /* in folders; NULL where files were named */
    hstep_tensor_file *files[SIDES];
    bool target_holds; /* for this precision of ours */
    double target;
    hs_rows *rows;
} opened;

const char *hs_row_kind_name(hs_row_kind kind) {
    static const char *const names[HS_ROW_KINDS] = {"", "nonfinite", "missing", "extra", "no referee", "shape", "type"};
    return names[kind];
}

bool hs_row_passes(const hs_row *row) { return row->kind == HS_ROW_COMPARED && row->claim != HSTEP_CLAIM_OUTSIDE; }

void hs_rows_free(hs_rows *rows) {
    for (size_t i = 0; i < rows->count; ++i) {
        free(rows->items[i].file);
        free(rows->items[i].tensor);
    }
    free(rows->items);
    *rows = (hs_rows){0};
}

/* A new row, NULL without memory. */
static hs_row *add_row(hs_rows *rows, const char *file, const char *tensor, hs_row_kind kind) {
    if (rows->count == rows->capacity) {
        const size_t capacity = rows->capacity == 0 ? 64 : 2 * rows->capacity;
        hs_row *items = realloc(rows->items, capacity * sizeof *items);
        if (items == NULL)
            return NULL;
        rows->items = items;
        rows->capacity = capacity;
    }
    hs_row *row = &rows->items[rows->count++];
    *row = (hs_row){.kind = kind,
                    .file = file != NULL ? strdup(file) : NULL,
                    .tensor = tensor != NULL ? strdup(tensor) : NULL,
                    .claim = HSTEP_CLAIM_OUTSIDE};
    return (row->file == NULL) == (file == NULL) && (row->tensor == NULL) == (tensor == NULL) ? row : NULL;
}

static int note(hs_rows *rows, const char *file, const char *tensor, hs_row_kind kind, const char *why) {
    hs_row *row = add_row(rows, file, tensor, kind);
    if (row == NULL)
        return hs_report_no_memory();
    snprintf(row->why, sizeof row->why, "%s", why);
    return HS_EXIT_DONE;
}

/* ---- Which rule ---- */

static bool is_scores(const char *name) {
    const char *dot = strrchr(name, '.'), *last = dot != NULL ? dot + 1 : name;
    return strcmp(last, "logits") == 0 || strcmp(last, "probabilities") == 0;
}

/* "blocks.3" or "blocks.3.output". */
static bool is_block(const char *name) {
    static const char prefix[] = "blocks.";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || !isdigit((unsigned char)name[sizeof prefix - 1]))
        return false;
    const char *rest = name + sizeof prefix - 1 + strspn(name + sizeof prefix - 1, "0123456789");
    return rest[0] == '\0' || strcmp(rest, ".output") == 0;
}

static bool has_target(const hs_comparison_task *task, const char *name) {
    for (size_t i = 0; i < task->target_for.count; ++i)
        if (fnmatch(task->target_for.items[i], name, 0) == 0)
            return true;
    return is_block(name) || is_scores(name);
}

/* The target, and whether it holds for the precision that ours was computed in. */
static int choose_target(opened *o) {
    const hs_comparison_task *task = o->task;
    hstep_precision precision = HSTEP_PRECISION_F64;
    const char *text = hstep_tensor_file_text(o->files[OURS], "precision");
    if (task->precision >= 0)
        precision = (hstep_precision)task->precision;
    else if (text != NULL && hstep_precision_parse(text, &precision) != HSTEP_OK) {
        hs_report("'%s' says of its precision \"%s\", which is none: give --precision", task->ours, text);
        return HS_EXIT_INPUT;
    }
    o->target_holds = task->target >= 0 || precision == HSTEP_PRECISION_F64;
    o->target = task->target >= 0 ? task->target : HSTEP_COMPARISON_TARGET;
    if (o->target_holds || task->referee != NULL)
        return HS_EXIT_DONE;
    return hs_report_usage("compare",
                           "ours was computed in %s, which has no target to meet: give --referee, or a --target",
                           hstep_precision_name(precision));
}

/* ---- One tensor ---- */

static void describe_shape(const hstep_tensor_info *info, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (size_t d = 0; d < info->rank && used < size; ++d)
        used += (size_t)snprintf(text + used, size - used, "%s%zu", d > 0 ? ", " : "", info->dims[d]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

/* Shapes and types that cannot be compared, as a row; *fits is then false. */
static int check(const opened *o, const hstep_tensor_info *infos, bool *fits) {
    static const char *const sides[SIDES] = {"ours", "theirs", "the referee"};
    char why[200], shapes[2][80];
    *fits = true;
    for (size_t i = 0; i < SIDES && *fits; ++i) {
        if (o->files[i] == NULL)
            continue;
        *fits = infos[i].storage <= HSTEP_STORAGE_BF16;
        snprintf(why, sizeof why, "%s holds %s, no floating-point numbers", sides[i],
                 hstep_storage_name(infos[i].storage));
    }
    if (!*fits)
        return note(o->rows, o->name, infos[OURS].name, HS_ROW_TYPE, why);
    for (size_t i = THEIRS; i < SIDES && *fits; ++i) {
        if (o->files[i] == NULL)
            continue;
        *fits = infos[i].rank == infos[OURS].rank &&
                memcmp(infos[i].dims, infos[OURS].dims, infos[i].rank * sizeof infos[i].dims[0]) == 0;
        describe_shape(&infos[OURS], shapes[0], sizeof shapes[0]);
        describe_shape(&infos[i], shapes[1], sizeof shapes[1]);
        snprintf(why, sizeof why, "%s in ours, %s in %s", shapes[0], shapes[1], sides[i]);
    }
    return *fits ? HS_EXIT_DONE : note(o->rows, o->name, infos[OURS].name, HS_ROW_SHAPE, why);
}

static void describe_nonfinite(hs_row *row) {
    const hstep_comparison *f = &row->figures;
    row->kind = HS_ROW_NONFINITE;
    snprintf(row->why, sizeof row->why, "infinite or NaN: %llu of ours, %llu of theirs, %llu of the referee's",
             (unsigned long long)f->our_nonfinite, (unsigned long long)f->their_nonfinite,
             (unsigned long long)f->referee_nonfinite);
}

static int compare_tensor(const opened *o, const hstep_tensor_place *places, const hstep_tensor_info *infos) {
    hstep_error error = {0};
    hs_row *row = add_row(o->rows, o->name, infos[OURS].name, HS_ROW_COMPARED);
    if (row == NULL)
        return hs_report_no_memory();
    if (hstep_tensor_compare(&places[OURS], &places[THEIRS], o->files[REFEREE] != NULL ? &places[REFEREE] : NULL,
                             &row->figures, &error) != HSTEP_OK)
        return hs_report_error(&error);
    const bool by_target = o->target_holds && (o->task->referee == NULL || has_target(o->task, infos[OURS].name));
    row->rule = by_target ? HSTEP_RULE_TARGET : HSTEP_RULE_REFEREE;
    row->target = o->target;
    row->logits = is_scores(infos[OURS].name);
    row->claim = hstep_comparison_judge(&row->figures, row->rule, row->target);
    if (row->figures.our_nonfinite + row->figures.their_nonfinite + row->figures.referee_nonfinite > 0)
        describe_nonfinite(row);
    return HS_EXIT_DONE;
}

/* A tensor of theirs. */
static int look_at(const opened *o, size_t index) {
    hstep_error error = {0};
    hstep_tensor_place places[SIDES] = {{0}};
    hstep_tensor_info infos[SIDES] = {{0}};
    places[THEIRS] = (hstep_tensor_place){o->files[THEIRS], index};
    if (hstep_tensor_file_tensor(o->files[THEIRS], index, &infos[THEIRS], &error) != HSTEP_OK)
        return hs_report_error(&error);
    for (size_t i = 0; i < SIDES; ++i) {
        if (i == THEIRS || o->files[i] == NULL)
            continue;
        places[i] = (hstep_tensor_place){o->files[i], hstep_tensor_file_find(o->files[i], infos[THEIRS].name)};
        if (places[i].index == SIZE_MAX)
            return note(o->rows, o->name, infos[THEIRS].name, i == OURS ? HS_ROW_MISSING : HS_ROW_NO_REFEREE,
                        i == OURS ? "not in ours" : "not in the referee's file");
        if (hstep_tensor_file_tensor(o->files[i], places[i].index, &infos[i], &error) != HSTEP_OK)
            return hs_report_error(&error);
    }
    bool fits;
    const int status = check(o, infos, &fits);
    return status == HS_EXIT_DONE && fits ? compare_tensor(o, places, infos) : status;
}

/* ---- One file ---- */

/* In the order of theirs; what ours alone has comes last. */
static int compare_all(opened *o) {
    int status = choose_target(o);
    for (size_t i = 0; i < hstep_tensor_file_count(o->files[THEIRS]) && status == HS_EXIT_DONE; ++i)
        status = look_at(o, i);
    for (size_t i = 0; i < hstep_tensor_file_count(o->files[OURS]) && status == HS_EXIT_DONE; ++i) {
        hstep_tensor_info info;
        hstep_error error = {0};
        if (hstep_tensor_file_tensor(o->files[OURS], i, &info, &error) != HSTEP_OK)
            status = hs_report_error(&error);
        else if (hstep_tensor_file_find(o->files[THEIRS], info.name) == SIZE_MAX)
            status = note(o->rows, o->name, info.name, HS_ROW_EXTRA, "not in theirs");
    }
    return status;
}

/* `paths` are ours, theirs and the referee's, NULL for none. */
static int compare_files(const hs_comparison_task *task, const char *name, const char *const *paths, hs_rows *rows) {
    opened o = {.task = task, .name = name, .rows = rows};
    hstep_error error = {0};
    int status = HS_EXIT_DONE;
    for (size_t i = 0; i < SIDES && status == HS_EXIT_DONE; ++i)
        if (paths[i] != NULL && hstep_tensor_file_open(paths[i], &o.files[i], &error) != HSTEP_OK)
            status = hs_report_error(&error);
    if (status == HS_EXIT_DONE)
        status = compare_all(&o);
    for (size_t i = 0; i < SIDES; ++i)
        hstep_tensor_file_close(o.files[i]);
    return status;
}

/* ---- Folders ---- */

static int is_tensor_file(const struct dirent *entry) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(entry->d_name), tail = sizeof ending - 1;
    return length > tail && entry->d_name[0] != '.' && strcmp(entry->d_name + length - tail, ending) == 0;
}

/* The files of a folder, sorted by the bytes of their names; from malloc. A negative count is reported. */
static int list(const char *folder, struct dirent ***entries) {
    const int count = scandir(folder, entries, is_tensor_file, NULL);
    if (count < 0) {
        hs_report("folder '%s': %s", folder, strerror(errno));
        return count;
    }
    for (int i = 1; i < count; ++i)
        for (int j = i; j > 0 && strcmp((*entries)[j]->d_name, (*entries)[j - 1]->d_name) < 0; --j) {
            struct dirent *kept = (*entries)[j];
            (*entries)[j] = (*entries)[j - 1];
            (*entries)[j - 1] = kept;
        }
    return count;
}

static void free_list(struct dirent **entries, int count) {
    for (int i = 0; i < count; ++i)
        free(entries[i]);
    if (count >= 0)
        free(entries);
}

static bool is_there(const char *folder, const char *name, char *path, size_t size) {
    struct stat status;
    return (size_t)snprintf(path, size, "%s/%s", folder, name) < size && stat(path, &status) == 0;
}

static int compare_named(const hs_comparison_task *task, const char *name, hs_rows *rows) {
    char texts[SIDES][HS_PATH_ROOM];
    const char *folders[SIDES] = {task->ours, task->theirs, task->referee}, *paths[SIDES] = {NULL};
    static const hs_row_kind kinds[SIDES] = {HS_ROW_MISSING, HS_ROW_EXTRA, HS_ROW_NO_REFEREE};
    static const char *const reasons[SIDES] = {"no such file in ours", "no such file in theirs",
                                               "no such file of the referee"};
    for (size_t i = 0; i < SIDES; ++i) {
        if (folders[i] == NULL)
            continue;
        if (!is_there(folders[i], name, texts[i], sizeof texts[i]))
            return note(rows, name, NULL, kinds[i], reasons[i]);
        paths[i] = texts[i];
    }
    return compare_files(task, name, paths, rows);
}

static int compare_folders(const hs_comparison_task *task, hs_rows *rows) {
    struct dirent **theirs = NULL, **ours = NULL;
    const int their_count = list(task->theirs, &theirs), our_count = list(task->ours, &ours);
    int status = their_count < 0 || our_count < 0 ? HS_EXIT_INPUT : HS_EXIT_DONE;
    char path[HS_PATH_ROOM];
    for (int i = 0; i < their_count && status == HS_EXIT_DONE; ++i)
        status = compare_named(task, theirs[i]->d_name, rows);
    for (int i = 0; i < our_count && status == HS_EXIT_DONE; ++i)
        if (!is_there(task->theirs, ours[i]->d_name, path, sizeof path))
            status = note(rows, ours[i]->d_name, NULL, HS_ROW_EXTRA, "no such file in theirs");
    free_list(theirs, their_count);
    free_list(ours, our_count);
    return status;
}

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int hs_rows_collect(const hs_comparison_task *task, hs_rows *rows) {
    const char *const paths[SIDES] = {task->ours, task->theirs, task->referee};
    const bool folders = is_folder(task->ours);
    *rows = (hs_rows){0};
    for (size_t i = THEIRS; i < SIDES; ++i)
        if (paths[i] != NULL && is_folder(paths[i]) != folders)
            return hs_report_usage("compare", "'%s' and '%s': give files, or folders with files of the same names",
                                   task->ours, paths[i]);
    const int status = folders ? compare_folders(task, rows) : compare_files(task, NULL, paths, rows);
    if (status != HS_EXIT_DONE || rows->count > 0)
        return status;
    hs_report("there is nothing to compare: '%s' and '%s' hold no tensors", task->ours, task->theirs);
    return HS_EXIT_INPUT;
}
