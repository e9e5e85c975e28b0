/* The rows of a comparison, for people and as JSON. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/checkpoints/stored.h"
#include "trainer/compare/rows.h"
#include "trainer/exit.h"
#include "trainer/report.h"

enum { FIGURE = 24, RULE = 48 };

/* Names come from a file and may hold what a terminal would obey: such a character is shown as '?'. */
static void name_of(const hs_row *row, char *text, size_t size) {
    snprintf(text, size, "%s%s%s", row->file != NULL ? row->file : "",
             row->file != NULL && row->tensor != NULL ? ": " : "", row->tensor != NULL ? row->tensor : "");
    for (; *text != '\0'; ++text)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static int widest_name(const hs_rows *rows) {
    char name[HS_PATH_ROOM];
    size_t widest = strlen("tensor");
    for (size_t i = 0; i < rows->count; ++i) {
        name_of(&rows->items[i], name, sizeof name);
        widest = strlen(name) > widest ? strlen(name) : widest;
    }
    return (int)widest;
}

static void describe(double figure, char text[FIGURE]) {
    if (isnan(figure))
        text[0] = '\0';
    else
        snprintf(text, FIGURE, "%.3g", figure);
}

/* The rule as a sentence of figures: what was held to what. */
static void describe_rule(const hs_row *row, char text[RULE]) {
    const hstep_comparison *f = &row->figures;
    if (row->claim == HSTEP_CLAIM_EQUAL_BITS)
        snprintf(text, RULE, "all %" PRIu64 " numbers", f->elements);
    else if (row->rule == HSTEP_RULE_TARGET)
        snprintf(text, RULE, "%.3g %s target %.3g", f->error, f->error <= row->target ? "<=" : ">", row->target);
    else
        snprintf(text, RULE, "%.3g %s their %.3g", f->our_error, f->our_error <= f->their_error ? "<=" : ">",
                 f->their_error);
}

static void print_row(const hs_row *row, int width) {
    char name[HS_PATH_ROOM], figures[5][FIGURE], rule[RULE], flips[2 * FIGURE] = "";
    const hstep_comparison *f = &row->figures;
    name_of(row, name, sizeof name);
    if (row->kind != HS_ROW_COMPARED) {
        printf("%-*s  %-22s  %s\n", width, name, hs_row_kind_name(row->kind), row->why);
        return;
    }
    const double numbers[5] = {f->largest, f->f32_step, f->error, f->our_error, f->their_error};
    for (size_t i = 0; i < 5; ++i)
        describe(numbers[i], figures[i]);
    if (row->logits)
        snprintf(flips, sizeof flips, "%" PRIu64 " of %" PRIu64, f->argmax_flips, f->rows);
    describe_rule(row, rule);
    printf("%-*s  %-22s  %-9s  %-9s  %-11s  %-12s  %-14s  %-11s  %s\n", width, name, hstep_claim_name(row->claim),
           figures[0], figures[1], figures[2], figures[3], figures[4], flips, rule);
}

/* How many rows make each claim, in words. */
static void print_summary(const hs_rows *rows) {
    size_t claims[HSTEP_CLAIM_OUTSIDE + 1] = {0}, others = 0;
    for (size_t i = 0; i < rows->count; ++i) {
        if (rows->items[i].kind == HS_ROW_COMPARED)
            ++claims[rows->items[i].claim];
        else
            ++others;
    }
    printf("\n%zu row%s: ", rows->count, rows->count == 1 ? "" : "s");
    for (int c = 0; c <= HSTEP_CLAIM_OUTSIDE; ++c)
        printf("%zu %s, ", claims[c], hstep_claim_name((hstep_claim)c));
    printf("%zu that could not be judged\n", others);
}

void hs_rows_print(const hs_comparison_task *task, const hs_rows *rows) {
    const int width = widest_name(rows);
    printf("%-*s  %-22s  %-9s  %-9s  %-11s  %-12s  %-14s  %-11s  %s\n", width, "tensor", "claim", "largest", "f32 step",
           "ours-theirs", "ours-referee", "theirs-referee", "argmax flips", "rule");
    for (size_t i = 0; i < rows->count; ++i)
        print_row(&rows->items[i], width);
    print_summary(rows);
    if (task->referee == NULL)
        puts("Without a referee every tensor is held to the target.");
}

/* ---- JSON ---- */

/* NaN and infinity have no place in JSON. */
static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *count(uint64_t x) { return json_integer((json_int_t)x); }

static json_t *text_or_null(const char *text) { return text != NULL ? hs_text_as_json(text) : json_null(); }

static void add_figures(json_t *object, const hs_row *row) {
    const hstep_comparison *f = &row->figures;
    json_object_set_new(object, "elements", count(f->elements));
    json_object_set_new(object, "different", count(f->different));
    json_object_set_new(object, "largest", number(f->largest));
    json_object_set_new(object, "f32_step", number(f->f32_step));
    json_object_set_new(object, "error", number(f->error));
    json_object_set_new(object, "our_error", number(f->our_error));
    json_object_set_new(object, "their_error", number(f->their_error));
    json_object_set_new(object, "nonfinite",
                        json_pack("{s:o, s:o, s:o}", "ours", count(f->our_nonfinite), "theirs",
                                  count(f->their_nonfinite), "referee", count(f->referee_nonfinite)));
    json_object_set_new(object, "argmax_flips", row->logits ? count(f->argmax_flips) : json_null());
    json_object_set_new(object, "argmax_rows", row->logits ? count(f->rows) : json_null());
    json_object_set_new(object, "rule", json_string(row->rule == HSTEP_RULE_TARGET ? "target" : "referee"));
    json_object_set_new(object, "target", row->rule == HSTEP_RULE_TARGET ? number(row->target) : json_null());
}

static json_t *row_as_json(const hs_row *row) {
    const bool judged = row->kind == HS_ROW_COMPARED;
    json_t *object = json_pack(
        "{s:o, s:o, s:s, s:b}", "file", text_or_null(row->file), "tensor", text_or_null(row->tensor), "verdict",
        judged ? hstep_claim_name(row->claim) : hs_row_kind_name(row->kind), "passed", hs_row_passes(row));
    if (!judged)
        json_object_set_new(object, "reason", json_string(row->why));
    if (judged || row->kind == HS_ROW_NONFINITE)
        add_figures(object, row);
    return object;
}

int hs_rows_print_json(const hs_comparison_task *task, const hs_rows *rows) {
    json_t *list = json_array();
    bool passed = true;
    for (size_t i = 0; i < rows->count; ++i) {
        passed = passed && hs_row_passes(&rows->items[i]);
        if (json_array_append_new(list, row_as_json(&rows->items[i])) != 0) {
            json_decref(list);
            return hs_report_no_memory();
        }
    }
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:b, s:o}", "schema", "halfstep.comparison/1", "ours",
                             hs_text_as_json(task->ours), "theirs", hs_text_as_json(task->theirs), "referee",
                             text_or_null(task->referee), "passed", passed, "tensors", list);
    if (root == NULL)
        return hs_report_no_memory();
    const int written = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(root);
    return written == 0 ? HS_EXIT_DONE : HS_EXIT_OUTPUT;
}
