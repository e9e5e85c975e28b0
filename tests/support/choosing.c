#include "support/choosing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "cpu/cpu.h"
#include "support/program.h"

void hs_test_enter_cache(void) {
    char folder[256];
    hs_test_enter_folder();
    cr_assert_not_null(getcwd(folder, sizeof folder));
    cr_assert_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

const hstep_product_depth hs_test_depths[2] = {{HSTEP_PRECISION_BF16, 48}, {HSTEP_PRECISION_F64, 48}};

hs_test_chosen *hs_test_choose_with(hs_planted planted, unsigned threads, const hs_lever_request *request) {
    hs_test_chosen *c = calloc(1, sizeof *c);
    cr_assert_not_null(c);
    cr_assert_eq(hs_cpu_create_tier(hs_planted_tier(planted), threads, &c->backend, &c->error), HSTEP_OK);
    c->status = hs_levers_choose(c->backend, request, &c->table, &c->error);
    for (size_t i = 0; i < c->table.count; i++)
        if (strcmp(c->table.levers[i].name, hs_planted_name(planted)) == 0)
            c->lever = &c->table.levers[i];
    return c;
}

hs_test_chosen *hs_test_choose(hs_planted planted, const char *selection) {
    return hs_test_choose_with(
        planted, 1, &(hs_lever_request){.selection = selection, .products = hs_test_depths, .product_count = 2});
}

void hs_test_release(hs_test_chosen *c) {
    hs_lever_table_free(&c->table);
    c->backend->api->destroy(c->backend);
    free(c);
}

size_t hs_test_lever_index(const hs_backend *backend, const char *name) {
    const hstep_lever *levers;
    const size_t count = backend->api->levers(backend, &levers);
    size_t i = 0;
    while (i < count && strcmp(levers[i].name, name) != 0)
        i++;
    cr_assert_lt(i, count, "no lever %s", name);
    return i;
}

const hstep_lever *hs_test_find_lever(const hs_test_chosen *c, const char *name) {
    for (size_t i = 0; i < c->table.count; i++)
        if (strcmp(c->table.levers[i].name, name) == 0)
            return &c->table.levers[i];
    cr_assert_fail("no lever %s", name);
    return NULL;
}

void hs_test_expect_refusal(hs_planted planted, const char *selection, hstep_status status, const char *word) {
    hs_test_chosen *c = hs_test_choose(planted, selection);
    cr_expect_eq(c->status, status, "%s: %s", selection, c->error.message);
    cr_expect_not_null(strstr(c->error.message, word), "%s: no '%s' in: %s", selection, word, c->error.message);
    cr_expect_eq(c->table.count, 0);
    hs_test_release(c);
}
