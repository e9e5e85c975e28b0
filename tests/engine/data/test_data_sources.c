/* Files, folders and patterns; files of their own to evaluate on; positions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <halfstep/halfstep.h>

#include "support/folder.h"
#include "support/shards.h"

static hstep_error error;

TestSuite(sources, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);
TestSuite(position, .init = hs_test_enter_folder, .fini = hs_test_leave_folder);

static hstep_dataset *load(const char *path) {
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_load(&path, 1, NULL, &dataset, &error), HSTEP_OK, "%s", error.message);
    return dataset;
}

/* What a path stands for, as the text of its files. */
static void expect_text(const char *path, const char *text) {
    hstep_dataset *dataset = load(path);
    int32_t tokens[64];
    const size_t size = hstep_dataset_tokens(dataset);
    cr_assert_leq(size, 64);
    cr_expect_eq(size, strlen(text), "%s", path);
    cr_assert_eq(hstep_dataset_read(dataset, 0, size, tokens, &error), HSTEP_OK);
    for (size_t i = 0; i < size; ++i)
        cr_expect_eq(tokens[i], text[i] + HSTEP_TOKEN_FIRST_BYTE, "%s, place %zu", path, i);
    hstep_dataset_destroy(dataset);
}

static void expect_refused(const char *path, const char *name, const char *word) {
    hstep_dataset *dataset = NULL;
    cr_expect_eq(hstep_dataset_load(&path, 1, NULL, &dataset, &error), HSTEP_ERROR_INPUT_FILE, "%s", path);
    cr_expect_not_null(strstr(error.message, name), "%s", error.message);
    cr_expect_not_null(strstr(error.message, word), "%s", error.message);
    cr_expect_null(dataset);
}

static void make_tree(void) {
    cr_assert_eq(mkdir("d", 0700), 0);
    cr_assert_eq(mkdir("d/B", 0700), 0);
    cr_assert_eq(mkdir("d/a", 0700), 0);
    cr_assert_eq(mkdir("d/.hidden", 0700), 0);
    hs_test_write_file("d/a.txt", "4");
    hs_test_write_file("d/B/z", "1");
    hs_test_write_file("d/a/2", "2");
    hs_test_write_file("d/a/3", "3");
    hs_test_write_file("d/b", "5");
    hs_test_write_file("d/.hidden/no", "no");
    hs_test_write_file("d/.no", "no");
    hs_test_write_file("d/empty", "");
    cr_assert_eq(mkfifo("d/pipe", 0600), 0);
}

Test(sources, a_folder_is_read_in_the_order_of_bytes_of_its_names) {
    make_tree();
    expect_text("d", "12345");
    expect_text("d/", "12345");
    expect_text("d/a", "23");
    hstep_dataset *dataset = load("d/");
    hstep_data_file file;
    cr_assert_eq(hstep_dataset_file_count(dataset), 5);
    cr_assert_eq(hstep_dataset_file(dataset, 1, &file, &error), HSTEP_OK);
    cr_expect_str_eq(file.name, "d/a/2");
    cr_expect_eq(file.first, 1);
    hstep_dataset_destroy(dataset);
    cr_assert_eq(mkdir("nothing", 0700), 0);
    expect_refused("nothing", "nothing", "directory without files");
    cr_assert_eq(symlink("missing", "d/broken"), 0);
    expect_refused("d", "d/broken", "No such file");
}

Test(sources, a_folder_that_leads_into_itself_is_refused) {
    cr_assert_eq(mkdir("d", 0700), 0);
    cr_assert_eq(mkdir("d/below", 0700), 0);
    hs_test_write_file("d/a", "text");
    cr_assert_eq(symlink("..", "d/below/up"), 0);
    expect_refused("d", "d/below/up", "leads back");
    cr_assert_eq(unlink("d/below/up"), 0);
    cr_assert_eq(symlink("../a", "d/below/link"), 0);
    expect_text("d", "texttext");
}

Test(sources, a_pattern_stands_for_what_it_matches) {
    make_tree();
    hs_test_write_file("x*y", "star");
    hs_test_write_file("xzy", "other");
    expect_text("d/a/[0-9]", "23");
    expect_text("d/*.txt", "4");
    expect_text("d/[aB]", "123");
    expect_text("x*y", "star"); /* a file of this name comes first */
    expect_text("x?y", "starother");
    expect_refused("d/*.bin", "d/*.bin", "no file matches");
    expect_refused("d/e*", "d/empty", "empty");
    expect_refused("d/b/*", "d/b/*", "Not a directory");
}

/* 3000 bytes, of which some lie in a small file, in a mapped one, and across both. */
Test(sources, windows_go_over_the_borders_of_text_files) {
    enum { SMALL = 100, LARGE = 70000, LENGTH = 50 };
    unsigned char *bytes = malloc(SMALL + LARGE);
    for (size_t i = 0; i < SMALL + LARGE; ++i)
        bytes[i] = (unsigned char)(i * 7 % 251);
    hs_test_write_bytes("1", bytes, SMALL);
    hs_test_write_bytes("2", bytes + SMALL, LARGE);
    hs_test_write_bytes("whole", bytes, SMALL + LARGE);
    free(bytes);
    static const char *const paths[] = {"1", "2"};
    hstep_dataset *parts = NULL, *whole = load("whole");
    cr_assert_eq(hstep_dataset_load(paths, 2, NULL, &parts, &error), HSTEP_OK);
    cr_expect_eq(hstep_dataset_checksum(parts), hstep_dataset_checksum(whole));
    const size_t windows = hstep_dataset_training_windows(whole, LENGTH);
    cr_assert_eq(hstep_dataset_training_windows(parts, LENGTH), windows);
    int32_t a[2 * LENGTH], b[2 * LENGTH];
    for (uint64_t i = 0; i < windows; ++i) {
        cr_assert_eq(hstep_dataset_batch(parts, 9, i, 1, LENGTH, a, a + LENGTH, &error), HSTEP_OK);
        cr_assert_eq(hstep_dataset_batch(whole, 9, i, 1, LENGTH, b, b + LENGTH, &error), HSTEP_OK);
        cr_assert_arr_eq(a, b, sizeof a);
    }
    hstep_dataset_destroy(parts);
    hstep_dataset_destroy(whole);
}

Test(sources, files_to_evaluate_on_are_what_is_held_out) {
    hs_test_write_file("train", "aaaaaaaaaaaa");
    hs_test_write_file("test", "bbbbbbb");
    static const char *const train = "train", *const test = "test";
    const hstep_dataset_options options = {.evaluation_paths = &test, .evaluation_count = 1};
    hstep_dataset *dataset = NULL;
    cr_assert_eq(hstep_dataset_load(&train, 1, &options, &dataset, &error), HSTEP_OK, "%s", error.message);
    cr_expect_eq(hstep_dataset_tokens(dataset), 19);
    cr_expect_eq(hstep_dataset_training_tokens(dataset), 12);
    int32_t tokens[30], targets[30];
    cr_assert_eq(hstep_dataset_batch(dataset, 1, 0, 10, 3, tokens, targets, &error), HSTEP_OK);
    for (size_t i = 0; i < 30; ++i)
        cr_expect(tokens[i] == 'a' + 2 && targets[i] == 'a' + 2);
    cr_assert_eq(hstep_dataset_evaluation_windows(dataset, 3, 0), 2);
    cr_assert_eq(hstep_dataset_evaluation_batch(dataset, 3, 0, 0, 2, tokens, targets, &error), HSTEP_OK);
    for (size_t i = 0; i < 6; ++i)
        cr_expect(tokens[i] == 'b' + 2 && targets[i] == 'b' + 2);
    cr_expect_eq(hstep_dataset_hold_out(dataset, 0.5, &error), HSTEP_ERROR_ARGUMENT, "that would move the border");
    cr_expect_eq(hstep_dataset_split_at(dataset, 3, &error), HSTEP_ERROR_ARGUMENT);
    hstep_dataset_destroy(dataset);
}

Test(sources, what_is_trained_on_is_not_evaluated_on) {
    hs_test_write_file("train", "aaaaaaaaaaaa");
    cr_assert_eq(symlink("train", "other"), 0);
    cr_assert_eq(link("train", "hard"), 0);
    static const char *const train = "train", *const names[] = {"train", "./train", "other", "hard", "h*"};
    for (size_t i = 0; i < 5; ++i) {
        const hstep_dataset_options options = {.evaluation_paths = &names[i], .evaluation_count = 1};
        hstep_dataset *dataset = NULL;
        cr_expect_eq(hstep_dataset_load(&train, 1, &options, &dataset, &error), HSTEP_ERROR_INPUT_FILE);
        cr_expect_not_null(strstr(error.message, "trained on and evaluated on"), "%s", error.message);
        cr_expect_null(dataset);
    }
    const hstep_dataset_options nothing = {.evaluation_count = 1};
    hstep_dataset *dataset = NULL;
    cr_expect_eq(hstep_dataset_load(&train, 1, &nothing, &dataset, &error), HSTEP_ERROR_ARGUMENT);
}

static char *save(const hstep_dataset *dataset, const hstep_data_position *position, size_t *size) {
    cr_assert_eq(hstep_dataset_save_position(dataset, position, NULL, size, &error), HSTEP_OK, "%s", error.message);
    char *text = malloc(*size + 1);
    cr_assert_eq(hstep_dataset_save_position(dataset, position, text, size, &error), HSTEP_OK);
    text[*size] = '\0';
    return text;
}

Test(position, comes_back_as_it_was) {
    hs_test_write_file("t\xe9xt", "some text of some length"); /* a name that is not UTF-8 */
    hstep_dataset *dataset = load("t\xe9xt");
    const hstep_data_position position = {.seed = UINT64_MAX - 4, .length = 7, .windows = 123456789012};
    size_t size, small;
    char *text = save(dataset, &position, &size);
    small = size - 1;
    cr_expect_eq(hstep_dataset_save_position(dataset, &position, text, &small, &error), HSTEP_ERROR_ARGUMENT);
    hstep_data_position found = {0};
    cr_assert_eq(hstep_dataset_restore_position(dataset, text, size, &found, &error), HSTEP_OK, "%s", error.message);
    cr_expect(found.seed == position.seed && found.length == 7 && found.windows == position.windows);
    /* The same bytes under another name, and in two files, are the same text. */
    hs_test_write_file("a", "some text ");
    hs_test_write_file("b", "of some length");
    hstep_dataset *parts = NULL;
    cr_assert_eq(hstep_dataset_load((const char *const[]){"a", "b"}, 2, NULL, &parts, &error), HSTEP_OK);
    cr_expect_eq(hstep_dataset_restore_position(parts, text, size, &found, &error), HSTEP_OK, "%s", error.message);
    hstep_dataset_destroy(parts);
    hstep_dataset_destroy(dataset);
    free(text);
}

Test(position, other_data_is_refused_with_its_differences) {
    hs_test_write_file("1", "some text of some length");
    hs_test_write_file("2", "some text of same length");
    hs_test_write_file("3", "some text of some length and more");
    hstep_dataset *dataset = load("1"), *changed = load("2"), *longer = load("3");
    const hstep_data_position position = {.seed = 1, .length = 7, .windows = 3};
    hstep_data_position found = {.seed = 77};
    size_t size;
    char *text = save(dataset, &position, &size);
    cr_expect_eq(hstep_dataset_restore_position(changed, text, size, &found, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect_not_null(strstr(error.message, "checksum "), "%s", error.message);
    cr_expect_not_null(strstr(error.message, "file '2' holds something else"), "%s", error.message);
    cr_expect_null(strstr(error.message, "tokens"), "%s", error.message);
    cr_expect_eq(hstep_dataset_restore_position(longer, text, size, &found, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect_not_null(strstr(error.message, "tokens 24 then and 33 now"), "%s", error.message);
    cr_expect_not_null(strstr(error.message, "training tokens 22 then and 30 now"), "%s", error.message);
    hstep_dataset_hold_out(dataset, 0.5, &error);
    cr_expect_eq(hstep_dataset_restore_position(dataset, text, size, &found, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect_not_null(strstr(error.message, ": training tokens 22 then and 12 now"), "%s", error.message);
    cr_expect_eq(found.seed, 77, "a refusal changes nothing");
    hstep_dataset_destroy(dataset);
    hstep_dataset_destroy(changed);
    hstep_dataset_destroy(longer);
    free(text);
}

Test(position, borders_of_shards_matter) {
    static const uint16_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8};
    hs_test_write_shard("a", tokens, 3);
    hs_test_write_shard("b", tokens + 3, 5);
    hs_test_write_shard("c", tokens, 4);
    hs_test_write_shard("d", tokens + 4, 4);
    hstep_dataset *one = NULL, *other = NULL;
    cr_assert_eq(hstep_dataset_load((const char *const[]){"a", "b"}, 2, NULL, &one, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_load((const char *const[]){"c", "d"}, 2, NULL, &other, &error), HSTEP_OK);
    cr_assert_eq(hstep_dataset_checksum(one), hstep_dataset_checksum(other));
    const hstep_data_position position = {.seed = 1, .length = 2, .windows = 3};
    hstep_data_position found;
    size_t size;
    char *text = save(one, &position, &size);
    cr_expect_eq(hstep_dataset_restore_position(one, text, size, &found, &error), HSTEP_OK);
    cr_expect_eq(hstep_dataset_restore_position(other, text, size, &found, &error), HSTEP_ERROR_INPUT_FILE);
    cr_expect_not_null(strstr(error.message, "file 'c' holds something else, file 'd' holds something else"), "%s",
                       error.message);
    free(text);
    hstep_dataset_destroy(one);
    hstep_dataset_destroy(other);
}

/* Cut anywhere, or with any one byte changed, it is refused or means what it meant. */
Test(position, damage_is_noticed_or_harmless) {
    hs_test_write_file("1", "some text of some length");
    hstep_dataset *dataset = load("1");
    const hstep_data_position position = {.seed = 0x1234, .length = 7, .windows = 3};
    hstep_data_position found;
    size_t size;
    char *text = save(dataset, &position, &size);
    for (size_t cut = 0; cut + 1 < size; ++cut) /* the last byte is a line end */
        cr_expect_eq(hstep_dataset_restore_position(dataset, text, cut, &found, &error), HSTEP_ERROR_INPUT_FILE);
    for (size_t i = 0; i < size; ++i) {
        const char kept = text[i];
        for (int byte = 0; byte < 256; ++byte) {
            text[i] = (char)byte;
            const hstep_status status = hstep_dataset_restore_position(dataset, text, size, &found, &error);
            cr_expect(status == HSTEP_OK || status == HSTEP_ERROR_INPUT_FILE);
        }
        text[i] = kept;
    }
    free(text);
    hstep_dataset_destroy(dataset);
}
