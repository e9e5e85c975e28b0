/* Precision by place: the products of a graph, and patterns that their names fit. */
#include <stdio.h>
#include <string.h>

#include "engine/error.h"
#include "engine/graph/graph.h"

/* Whether a name fits a pattern, in which * stands for any characters, also for none. */
static bool fits(const char *pattern, const char *name) {
    const char *star = NULL, *resumed = NULL; /* behind the last *, and the characters that it does not stand for */
    while (*name != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            resumed = name;
        } else if (*pattern == *name) {
            ++pattern;
            ++name;
        } else if (star != NULL) {
            pattern = star;
            name = ++resumed;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

/* ---- A pattern that no product fits ---- */

enum { NAME_ROOM = 96 };

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

/* How many insertions, deletions and replacements (Levenshtein, 1966) make a name fit a pattern. */
typedef struct gap {
    size_t whole, beginning; /* of the name, and of the best of its beginnings */
} gap;

static gap gap_of(const char *pattern, const char *name) {
    size_t row[NAME_ROOM]; /* by the length of a beginning */
    const size_t length = least_of(strlen(name), NAME_ROOM - 1);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        const bool star = pattern[i] == '*';
        size_t diagonal = row[0];
        row[0] += !star;
        for (size_t j = 1; j <= length; j++) {
            const size_t replaced = diagonal + (pattern[i] != name[j - 1]), above = row[j];
            row[j] = star ? least_of(above, row[j - 1]) : least_of(replaced, least_of(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    gap found = {.whole = row[length], .beginning = row[length]};
    for (size_t j = 0; j < length; j++)
        found.beginning = least_of(found.beginning, row[j]);
    return found;
}

/* The product that the pattern may have meant: a part of a name is nearer than another one. NULL without products. */
static const char *nearest_product(const hstep_graph *graph, const char *pattern) {
    const char *nearest = NULL;
    gap least = {SIZE_MAX, SIZE_MAX};
    for (size_t n = 0; n < graph->node_count; n++) {
        if (!hs_has_products(graph->nodes[n].operation))
            continue;
        const gap far = gap_of(pattern, graph->nodes[n].name);
        if (far.beginning < least.beginning || (far.beginning == least.beginning && far.whole < least.whole)) {
            least = far;
            nearest = graph->nodes[n].name;
        }
    }
    return nearest;
}

/* The first products' names, as many as a sentence bears. */
static void list_products(const hstep_graph *graph, char *text, size_t size) {
    enum { NAMED = 10 };
    size_t used = 0, count = 0;
    text[0] = '\0';
    for (size_t n = 0; n < graph->node_count; n++) {
        const char *name = graph->nodes[n].name;
        if (!hs_has_products(graph->nodes[n].operation))
            continue;
        if (++count <= NAMED && used + strlen(name) + 3 < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
    }
    if (count > NAMED)
        (void)snprintf(text + used, size - used, ", ... (%zu)", count);
}

static hstep_status refuse_pattern(const hstep_graph *graph, const char *pattern, hstep_error *error) {
    char list[240];
    const char *nearest = nearest_product(graph, pattern);
    HS_RETURN_IF(nearest == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "a precision for \"%.60s\", and the graph has no products to round", pattern);
    list_products(graph, list, sizeof list);
    for (size_t n = 0; n < graph->node_count; n++)
        HS_RETURN_IF(fits(pattern, graph->nodes[n].name), error, HSTEP_ERROR_ARGUMENT,
                     "\"%.60s\" is no product, and all but products computes in f64; products are %s",
                     graph->nodes[n].name, list);
    return hs_fail(error, HSTEP_ERROR_ARGUMENT,
                   "no product has a name like \"%.40s\", the nearest is \"%.40s\"; there are %s", pattern, nearest,
                   list);
}

/* ---- The public functions ---- */

hstep_status hs_check_precision(const char *name, hstep_precision precision, hstep_error *error) {
    HS_BLAME_IF(precision != HSTEP_PRECISION_F64 && precision != HSTEP_PRECISION_FP16 &&
                    precision != HSTEP_PRECISION_BF16,
                error, HSTEP_ERROR_ARGUMENT, name, "%s: unknown precision %d", name, (int)precision);
    return HSTEP_OK;
}

hstep_status hstep_graph_set_precision(hstep_graph *graph, const char *pattern, hstep_precision precision,
                                       hstep_error *error) {
    HS_RETURN_IF(graph == NULL || pattern == NULL || pattern[0] == '\0', error, HSTEP_ERROR_ARGUMENT,
                 "hstep_graph_set_precision needs a graph and a pattern");
    HS_FORWARD(hs_check_precision(pattern, precision, error));
    HS_RETURN_IF(graph->loss != 0, error, HSTEP_ERROR_ARGUMENT,
                 "a precision for \"%.60s\" comes after the graph's loss; set it before hstep_graph_set_loss", pattern);
    bool any = false;
    for (size_t n = 0; n < graph->node_count; n++) {
        hs_node *node = &graph->nodes[n];
        if (!hs_has_products(node->operation) || !fits(pattern, node->name))
            continue;
        node->precision = precision;
        any = true;
    }
    return any ? HSTEP_OK : refuse_pattern(graph, pattern, error);
}

hstep_status hs_graph_apply_rules(hstep_graph *graph, const hstep_precision_rule *rules, size_t count,
                                  hstep_error *error) {
    for (size_t i = 0; i < count; i++) {
        HS_RETURN_IF(memchr(rules[i].pattern, '\0', sizeof rules[i].pattern) == NULL, error, HSTEP_ERROR_ARGUMENT,
                     "precision rule %zu of %zu: its pattern does not end within %zu bytes", i + 1, count,
                     sizeof rules[i].pattern);
        HS_FORWARD(hstep_graph_set_precision(graph, rules[i].pattern, rules[i].precision, error));
    }
    return HSTEP_OK;
}

void hs_graph_list_products(const hstep_graph *graph, hstep_product *products, size_t room, size_t *count) {
    *count = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (!hs_has_products(node->operation) || node->phase != HS_PHASE_FORWARD)
            continue;
        if (*count < room) {
            hstep_product *product = &products[*count];
            *product = (hstep_product){.precision = node->precision};
            (void)snprintf(product->name, sizeof product->name, "%s", node->name);
        }
        (*count)++;
    }
}

hstep_status hstep_graph_products(const hstep_graph *graph, hstep_product *products, size_t room, size_t *count,
                                  hstep_error *error) {
    HS_RETURN_IF(graph == NULL || count == NULL || (products == NULL && room > 0), error, HSTEP_ERROR_ARGUMENT,
                 "hstep_graph_products needs a graph and places");
    hs_graph_list_products(graph, products, room, count);
    return HSTEP_OK;
}

hstep_precision hs_graph_scaled_precision(const hstep_graph *graph) {
    hstep_precision found = HSTEP_PRECISION_F64;
    for (size_t n = 0; n < graph->node_count; n++) {
        const hs_node *node = &graph->nodes[n];
        if (hs_has_products(node->operation) && found != HSTEP_PRECISION_FP16 && node->precision != HSTEP_PRECISION_F64)
            found = node->precision;
    }
    return found;
}
