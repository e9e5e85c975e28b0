/* A byte that changed, wherever it stands, and a file that was cut, wherever it was cut, are noticed. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "support/folder.h"
#include "support/memory_file.h"
#include "support/models.h"

static hs_test_run make_run(void) {
    hstep_context *context = NULL;
    hstep_error e = {0};
    hs_test_expect_ok(hstep_context_create(NULL, &context, &e), &e);
    return hs_test_general_run_create_in(context);
}

/* A small checkpoint with everything in it. */
static hs_test_bytes make_checkpoint(hs_test_run *run) {
    hstep_error e = {0};
    hstep_update update;
    const hstep_batch batch = hs_test_general_batch();
    hs_test_expect_ok(hstep_trainer_update(run->trainer, &batch, 1, &update, &e), &e);
    const hstep_section sections[] = {{"configuration", "{\"a\": 1}", 8}, {"empty", NULL, 0}, {"random", "\1\2\3", 3}};
    hs_test_expect_ok(hstep_checkpoint_save(run->trainer, "file", &(hstep_checkpoint_extras){sections, 3, 2.5}, &e),
                      &e);
    return hs_test_read_bytes("file");
}

/* Whether a file of these bytes is taken for whole. */
static bool passes(const unsigned char *bytes, size_t size) {
    hs_test_memory_file memory = {bytes, size};
    const hs_files files = hs_test_memory_files(&memory);
    hstep_tensor_file *file = NULL;
    hstep_error e = {0};
    hstep_checkpoint_state state;
    hstep_status status = hs_tensor_file_open(&files, "FILE", &file, &e);
    if (status == HSTEP_OK)
        status = hstep_checkpoint_read_state(file, &state, &e);
    if (status == HSTEP_OK)
        status = hstep_tensor_file_verify(file, &e);
    hstep_tensor_file_close(file);
    if (status != HSTEP_OK)
        cr_expect(status == HSTEP_ERROR_INPUT_FILE && strstr(e.message, "FILE") != NULL, "%s: %s",
                  hstep_status_name(status), e.message);
    return status == HSTEP_OK;
}

Test(checkpoint_damage, every_flipped_byte, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hs_test_bytes bytes = make_checkpoint(&run);
    cr_assert(passes(bytes.at, bytes.size));
    for (size_t i = 0; i < bytes.size; i++) {
        /* One bit, the bit between capital and small letters, and all bits. */
        const unsigned char flips[] = {(unsigned char)(1u << i % 8), 0x20, 0xff};
        for (size_t f = 0; f < sizeof flips; f++) {
            bytes.at[i] ^= flips[f];
            cr_expect_not(passes(bytes.at, bytes.size), "byte %zu of %zu xor %#x", i, bytes.size, flips[f]);
            bytes.at[i] ^= flips[f];
        }
    }
    cr_assert(passes(bytes.at, bytes.size));
    free(bytes.at);
    hs_test_run_destroy(&run);
}

Test(checkpoint_damage, every_cut_and_what_is_added, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hs_test_bytes bytes = make_checkpoint(&run);
    unsigned char *longer = calloc(bytes.size + 8, 1);
    memcpy(longer, bytes.at, bytes.size);
    for (size_t size = 0; size < bytes.size + 8; size++)
        cr_expect_eq(passes(longer, size), size == bytes.size, "%zu of %zu bytes", size, bytes.size);
    free(longer);
    free(bytes.at);
    hs_test_run_destroy(&run);
}

/* Two parts of equal size that changed places have the right bytes, at the wrong places. */
Test(checkpoint_damage, exchanged_tensors, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run();
    hs_test_bytes bytes = make_checkpoint(&run);
    hstep_tensor_file *file = NULL;
    hstep_error e = {0};
    hs_test_expect_ok(hstep_tensor_file_open("file", &file, &e), &e);
    const hstep_tensor_info w = file->tensors[hstep_tensor_file_find(file, "w")];
    const hstep_tensor_info m = file->tensors[hstep_tensor_file_find(file, "adamw.m.w")];
    unsigned char kept[15 * 8];
    cr_assert_eq(w.bytes, sizeof kept);
    memcpy(kept, bytes.at + w.offset, sizeof kept);
    memcpy(bytes.at + w.offset, bytes.at + m.offset, sizeof kept);
    memcpy(bytes.at + m.offset, kept, sizeof kept);
    cr_expect_not(passes(bytes.at, bytes.size));
    hstep_tensor_file_close(file);
    free(bytes.at);
    hs_test_run_destroy(&run);
}

Test(checkpoint_damage, nothing_is_loaded, .init = hs_test_enter_folder, .fini = hs_test_leave_folder) {
    hs_test_run run = make_run(), target = make_run();
    hs_test_bytes bytes = make_checkpoint(&run);
    hs_test_snapshot before = hs_test_snapshot_take(target.trainer);
    hs_test_memory_file memory = {bytes.at, bytes.size};
    const hs_files files = hs_test_memory_files(&memory);
    hstep_error e = {0};
    for (size_t i = 0; i < bytes.size; i += 11) {
        bytes.at[i] ^= 4;
        cr_expect_eq(hs_checkpoint_load(&files, target.trainer, "FILE", &e), HSTEP_ERROR_INPUT_FILE, "byte %zu", i);
        cr_expect_eq(hs_checkpoint_load_weights(&files, target.model, "FILE", &e), HSTEP_ERROR_INPUT_FILE);
        bytes.at[i] ^= 4;
    }
    hs_test_snapshot after = hs_test_snapshot_take(target.trainer);
    cr_expect(hs_test_snapshot_equal(&before, &after));
    hs_test_expect_ok(hs_checkpoint_load(&files, target.trainer, "FILE", &e), &e);
    hs_test_snapshot_free(&before);
    hs_test_snapshot_free(&after);
    free(bytes.at);
    hs_test_run_destroy(&run);
    hs_test_run_destroy(&target);
}
