#include "support/untouched.h"

#include <criterion/criterion.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "support/models.h"

enum { PATTERN = 0xA5 };

/* What a trainer and a graph are like, apart from caches. */
typedef struct image {
    hs_test_snapshot snapshot;
    double loss_scale;
    uint64_t attempts, finite_updates;
    size_t values, nodes;
    hstep_value loss, output;
    size_t block;
} image;

hs_test_places hs_test_out;

static hs_test_places out_before;
static hstep_trainer *watched_trainer;
static hstep_graph *watched_graph;
static image image_before;

void hs_test_out_fill(void) { memset(&hs_test_out, PATTERN, sizeof hs_test_out); }

void hs_test_watch(hstep_trainer *trainer, hstep_graph *graph) {
    watched_trainer = trainer;
    watched_graph = graph;
}

static image take_image(void) {
    image made = {0};
    if (watched_trainer != NULL) {
        made.snapshot = hs_test_snapshot_take(watched_trainer);
        made.loss_scale = hstep_trainer_loss_scale(watched_trainer);
        made.attempts = hstep_trainer_attempts(watched_trainer);
        made.finite_updates = hstep_trainer_finite_updates(watched_trainer);
    }
    if (watched_graph != NULL) {
        made.values = watched_graph->value_count;
        made.nodes = watched_graph->node_count;
        made.loss = watched_graph->loss;
        made.output = watched_graph->output;
        made.block = watched_graph->block;
    }
    return made;
}

void hs_test_before_call(hstep_error *error) {
    if (error != NULL)
        memset(error, PATTERN, sizeof *error);
    out_before = hs_test_out;
    image_before = take_image();
}

void hs_test_forget_call(void) {
    if (watched_trainer != NULL)
        hs_test_snapshot_free(&image_before.snapshot);
}

static void compare_images(const char *call, int line) {
    image after = take_image();
    if (watched_trainer != NULL) {
        cr_expect(hs_test_snapshot_equal(&image_before.snapshot, &after.snapshot), "line %d: %s: the trainer changed",
                  line, call);
        hs_test_snapshot_free(&image_before.snapshot);
        hs_test_snapshot_free(&after.snapshot);
    }
    cr_expect(image_before.loss_scale == after.loss_scale && image_before.attempts == after.attempts &&
                  image_before.finite_updates == after.finite_updates,
              "line %d: %s: the loss scale or a count changed", line, call);
    cr_expect(image_before.values == after.values && image_before.nodes == after.nodes &&
                  image_before.loss == after.loss && image_before.output == after.output &&
                  image_before.block == after.block,
              "line %d: %s: the graph changed", line, call);
}

void hs_test_after_call(hstep_status expected, hstep_status status, const hstep_error *error, const char *call,
                        int line) {
    cr_expect_eq(status, expected, "line %d: %s: %s, not %s", line, call, hstep_status_name(status),
                 hstep_status_name(expected));
    const unsigned char *before = (const unsigned char *)&out_before, *after = (const unsigned char *)&hs_test_out;
    for (size_t i = 0; i < sizeof hs_test_out; i++)
        if (before[i] != after[i]) {
            cr_expect(false, "line %d: %s: wrote into byte %zu of hs_test_out", line, call, i);
            hs_test_out = out_before;
            break;
        }
    compare_images(call, line);
    if (error != NULL && status != HSTEP_OK) {
        cr_expect_eq(error->status, status, "line %d: %s: the error has another status", line, call);
        const char *end = memchr(error->message, '\0', sizeof error->message);
        cr_expect(end != NULL && end - error->message >= 10, "line %d: %s: the error says nothing", line, call);
        cr_expect(memchr(error->operation, '\0', sizeof error->operation) != NULL,
                  "line %d: %s: the operation's name has no end", line, call);
    }
}
