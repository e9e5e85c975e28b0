/* Memory that runs out, one allocation after the other: an error with its status, and never half a result. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <jansson.h>

#include "support/program.h"

/* The options, whose texts find no memory. */
#define realloc(old, size) ((void)(old), (void)(size), NULL)
#include "trainer/options/parse.c"
#define refuse value_refuse
#include "trainer/options/value.c"
#undef refuse
#define refuse places_refuse
#include "trainer/options/places.c"
#undef refuse
#undef realloc
#define refuse config_refuse
#define store config_store
#include "trainer/options/config.c"
#undef refuse
#undef store
#include "trainer/checkpoints/read.c"
#include "trainer/checkpoints/stored.c"
#include "trainer/options/check.c"
#include "trainer/options/table.c"
#include "trainer/options/words.c"
#include "trainer/train/records/lock.c"

/* The demonstration; its files have functions of the same names. */
#define print report_print
#include "trainer/report.c"
#undef print
#define fill demonstration_fill
#include "trainer/demonstration/demonstration.c"
#undef fill
#include "trainer/demonstration/fixture.c"
#define describe overflow_describe
#define run overflow_run
#include "trainer/demonstration/overflow.c"
#undef describe
#undef run
#include "trainer/demonstration/representation.c"
#include "trainer/demonstration/text_reference.c"
#define describe updates_describe
#include "trainer/demonstration/updates.c"
#undef describe

Test(memory, a_data_file_that_cannot_be_remembered_is_5, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_write_file("config", "{\"data\": \"x\"}");
    hs_test_write_file("list", "{\"data\": [\"x\", \"y\"]}");
    char *const lines[][4] = {{"train", "--data", "x"},
                              {"train", "--config", "config"},
                              {"train", "--config", "list"},
                              {"train", "--precision-for", "head=f64"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i) {
        hs_options options;
        cr_expect_eq(hs_options_parse(3, (char **)(size_t)lines[i], &options), HS_EXIT_UNAVAILABLE, "line %zu", i);
        hs_options_free(&options);
    }
}

static size_t allocations, fails_at;

/* Fails from `fails_at` on, if that is not 0. */
static void *allocate(size_t size) {
    ++allocations;
    return fails_at != 0 && allocations >= fails_at ? NULL : malloc(size);
}

/* Fails once. */
static void *allocate_all_but_one(size_t size) { return ++allocations == fails_at ? NULL : malloc(size); }

static int demonstrate_into(char *text, size_t size) {
    FILE *out = fmemopen(text, size, "w");
    cr_assert_not_null(out);
    allocations = 0;
    const int status = demonstration_run(HSTEP_PRECISION_F64, out);
    fclose(out);
    return status;
}

Test(memory, a_demonstration_is_whole_or_not_there) {
    static char whole[1 << 16], text[1 << 16];
    json_set_alloc_funcs(allocate, free);
    cr_assert_eq(demonstrate_into(whole, sizeof whole), HS_EXIT_DONE);
    const size_t all = allocations;
    cr_assert_gt(all, 200);
    /* Every allocation of the record's own making, and every seventh when all that follow fail too. */
    size_t complete = 0;
    for (int once = 0; once < 2; ++once) {
        json_set_alloc_funcs(once ? allocate_all_but_one : allocate, free);
        for (fails_at = 1; fails_at <= all; fails_at += once ? 1 : 7) {
            memset(text, 0, sizeof text);
            const int status = demonstrate_into(text, sizeof text);
            if (status == HS_EXIT_DONE) {
                ++complete;
                cr_expect_str_eq(text, whole, "allocation %zu of %zu", fails_at, all);
            } else {
                cr_expect_eq(status, HS_EXIT_UNAVAILABLE, "allocation %zu of %zu: %d", fails_at, all, status);
                cr_expect_str_empty(text, "allocation %zu of %zu", fails_at, all);
            }
        }
    }
    cr_expect_lt(complete, all / 10, "nearly every allocation is needed");
}
