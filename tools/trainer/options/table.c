#include <string.h>

#include <halfstep/context.h>
#include <halfstep/data.h>
#include <halfstep/model.h>
#include <halfstep/trainer.h>

#include "trainer/options/options.h"

const hs_choice hs_precision_choices[] = {{"bf16", HSTEP_PRECISION_BF16},      {"fp16", HSTEP_PRECISION_FP16},
                                          {"f64", HSTEP_PRECISION_F64},        {"bf16-fp32", HSTEP_PRECISION_BF16},
                                          {"fp16-fp32", HSTEP_PRECISION_FP16}, {NULL, 0}};
const hs_choice hs_backend_choices[] = {{"auto", HSTEP_BACKEND_AUTO},
                                        {"cpu", HSTEP_BACKEND_CPU},
                                        {"cpu-reference", HSTEP_BACKEND_CPU_REFERENCE},
                                        {"vulkan", HSTEP_BACKEND_VULKAN},
                                        {NULL, 0}};
static const hs_choice SCHEDULES[] = {
    {"constant", HSTEP_SCHEDULE_CONSTANT}, {"cosine", HSTEP_SCHEDULE_COSINE}, {NULL, 0}};
static const hs_choice RECOMPUTATIONS[] = {
    {"none", HSTEP_RECOMPUTE_NONE}, {"blocks", HSTEP_RECOMPUTE_BLOCKS}, {NULL, 0}};
static const hs_choice INITIALIZATIONS[] = {{"normal", HSTEP_INIT_NORMAL}, {"xavier", HSTEP_INIT_XAVIER}, {NULL, 0}};
const hs_choice hs_token_type_choices[] = {{"auto", HSTEP_TOKENS_AUTO},
                                           {"bytes", HSTEP_TOKENS_BYTES},
                                           {"uint16", HSTEP_TOKENS_UINT16},
                                           {"uint32", HSTEP_TOKENS_UINT32},
                                           {NULL, 0}};

#define LONG_RUN 1e12
#define LARGEST_SCALE 0x1p1000

#define SCALE(field) REAL(scaler.field, 1, LARGEST_SCALE), .by_precision = true

#define HS_SETTINGS hs_options
#include "trainer/options/rows.h"

/* clang-format off */
static const hs_option TABLE[] = {
    {.name = "data", .group = "Data", TEXTS(data), .argument = "PATH",
     .free = true, .help = "Text (any bytes) or token shards to train on: a file, a folder with all in it, or a quoted pattern; may "
             "be repeated. Without it: a built-in corpus of two-digit sums, made from --seed"},
    {.name = "eval-data", .group = "Data", TEXTS(eval_data), .argument = "PATH",
     .free = true, .help = "Data of the same kind to evaluate on, in place of --held-out; may be repeated"},
    {.name = "held-out", .group = "Data", REAL(held_out, 0, 1), .below = true, .argument = "SHARE", .initial = "0.1",
     .help = "Share of the data, at its end, that evaluation uses and training never sees"},
    {.name = "token-type", .group = "Data", CHOICE(token_type, hs_token_type_choices), .argument = "T", .initial = "auto",
     .help = "How raw tokens are written, such as nanoGPT's; auto knows shards of llm.c by their header and takes all else "
             "for text"},
    {.name = "vocabulary", .group = "Data", COUNT(vocabulary, 0, 1 << 24), .argument = "N", .initial = "0",
     .help = "Of token shards, which raw tokens need; 0: that of the format, 50257 for llm.c's of uint16"},

    {.name = "precision", .group = "Model", CHOICE(precision, hs_precision_choices), .argument = "P", .initial = "bf16",
     .help = "How matrix products round"},
    {.name = "precision-for", .group = "Model", TEXTS(precision_for), .argument = "LIST", .initial = "none",
     .help = "Precision by place: NAME=P, commas between several, such as 'head=f64,blocks.0.*=fp16', where * stands "
             "for any characters; of those that fit a product the last counts; may be repeated"},
    {.name = "layers", .group = "Model", COUNT(layers, 1, 1024), .argument = "N", .initial = "4", .builtin_initial = "2",
     .help = "Decoder blocks"},
    {.name = "width", .group = "Model", COUNT(width, 2, HS_MANY), .argument = "N", .initial = "128", .builtin_initial = "64",
     .help = "Width of the residual stream"},
    {.name = "heads", .group = "Model", COUNT(heads, 1, HS_MANY), .argument = "N", .initial = "4",
     .help = "Attention heads; they divide the width, and the width of one is even"},
    {.name = "kv-heads", .group = "Model", COUNT(kv_heads, 0, HS_MANY), .argument = "N", .initial = "0",
     .help = "Key and value heads; they divide --heads; 0: as many as --heads"},
    {.name = "feed-forward", .group = "Model", COUNT(feed_forward, 1, HS_MANY), .argument = "N", .initial = "384", .builtin_initial = "192",
     .help = "Width of the feed-forward layers"},
    {.name = "context", .group = "Model", COUNT(context, 1, HS_MANY), .argument = "N", .initial = "64", .builtin_initial = "32",
     .help = "Tokens in a training sequence"},
    {.name = "init", .group = "Model", CHOICE(init, INITIALIZATIONS), .argument = "SCHEME", .initial = "normal",
     .help = "Initial weights: normal 0.02 with scaled residual projections, or Xavier uniform"},

    {.name = "steps", .group = "Training", COUNT(steps, 1, LONG_RUN), .argument = "N", .initial = "500", .builtin_initial = "1000",
     .help = "Committed updates"},
    {.name = "batch-size", .group = "Training", COUNT(batch_size, 1, HS_MANY), .argument = "N", .initial = "12", .builtin_initial = "32",
     .help = "Sequences in a micro-batch"},
    {.name = "micro-batches", .group = "Training", COUNT(micro_batches, 1, HS_MANY), .argument = "N", .initial = "1",
     .help = "Micro-batches whose gradients add up to one update"},
    {.name = "replicas", .group = "Training", COUNT(replicas, 1, HS_MANY), .argument = "N", .initial = "1",
     .help = "Replicas in an update, each with its micro-batches"},
    {.name = "learning-rate", .group = "Training", REAL(learning_rate, 0, 1e6), .argument = "X", .initial = "0.001", .builtin_initial = "0.003",
     .help = "Peak of the schedule"},
    {.name = "schedule", .group = "Training", CHOICE(schedule, SCHEDULES), .argument = "KIND", .initial = "cosine",
     .help = "Learning rate after the warm-up"},
    {.name = "min-learning-rate", .group = "Training", REAL(min_learning_rate, 0, 1e6), .argument = "X",
     .initial = "0", .help = "End of the cosine"},
    {.name = "warmup-steps", .group = "Training", COUNT(warmup_steps, 0, LONG_RUN), .argument = "N", .initial = "50",
     .help = "Updates during which the rate rises to its peak; unless given, at most a tenth of --steps"},
    {.name = "beta1", .group = "Training", REAL(beta1, 0, 1), .below = true, .argument = "X", .initial = "0.9",
     .help = "AdamW: decay of the first moment"},
    {.name = "beta2", .group = "Training", REAL(beta2, 0, 1), .below = true, .argument = "X", .initial = "0.999", .builtin_initial = "0.95",
     .help = "AdamW: decay of the second moment"},
    {.name = "epsilon", .group = "Training", REAL(epsilon, 0, 1), .above = true, .argument = "X", .initial = "1e-8",
     .help = "AdamW: added to the root of the second moment"},
    {.name = "weight-decay", .group = "Training", REAL(weight_decay, 0, 1e6), .argument = "X", .initial = "0.01",
     .help = "AdamW: decoupled decay of matrices"},
    {.name = "grad-clip", .group = "Training", REAL(grad_clip, 0, 1e300), .above = true, .argument = "X",
     .initial = "1", .help = "Largest norm of the unscaled gradients"},

    {.name = "loss-scale", .group = "Loss scaling", SCALE(initial), .argument = "S",
     .help = "First loss scale, a power of two"},
    {.name = "min-loss-scale", .group = "Loss scaling", SCALE(minimum), .argument = "S",
     .help = "Skips never take the scale below this"},
    {.name = "max-loss-scale", .group = "Loss scaling", SCALE(maximum), .argument = "S",
     .help = "Growth never takes the scale above this"},
    {.name = "growth-interval", .group = "Loss scaling", COUNT(scaler.growth_interval, 1, LONG_RUN), .argument = "N",
     .by_precision = true, .help = "Committed updates after which the scale doubles"},

    {.name = "eval-every", .group = "Evaluation and samples", COUNT(eval_every, 0, LONG_RUN), .argument = "N",
     .initial = "100", .free = true, .help = "Updates between evaluations on the held-out text; 0: at the end only"},
    {.name = "eval-batches", .group = "Evaluation and samples", COUNT(eval_batches, 0, LONG_RUN), .argument = "N",
     .initial = "8", .free = true, .help = "Batches in an evaluation during the run, evenly spaced; 0: all. The one at the end "
                             "takes all"},
    {.name = "prompt", .group = "Evaluation and samples", TEXT(prompt), .argument = "TEXT", .initial = "\n",
     .free = true, .help = "Text that the sample at the end goes on from"},
    {.name = "sample-tokens", .group = "Evaluation and samples", COUNT(sample_tokens, 0, HS_MANY), .argument = "N",
     .initial = "120", .free = true, .help = "Length of the sample; 0: none. Token shards have no text and give no sample"},
    {.name = "temperature", .group = "Evaluation and samples", REAL(temperature, 0, 1e6), .argument = "X",
     .initial = "0.8", .free = true, .help = "Of the sample; 0: always the likeliest token"},

    BACKEND_ROW(backend, .group = "Run", .initial = "auto", .free = true, .help = "What computes"),
    DEVICE_ROW(device, .group = "Run", .initial = "any", .free = true, .help = DEVICE_HELP),
    THREADS_ROW(threads, .group = "Run", .initial = "0", .free = true,
                .help = "Processor threads; 0: as many as the process may use, or one where that is faster. With exact levers no "
                        "result depends on it"),
    LEVERS_ROW(levers, .group = "Run", .initial = "exact",
               .help = "Faster ways to compute: auto takes what passes and wins on this machine (see trainer levers), "
                       "exact what gives the reference's bits, none plain C; or changes to auto, such as "
                       "+cpu.openblas,-cpu.avx512"),
    {.name = "recompute", .group = "Run", CHOICE(recompute, RECOMPUTATIONS), .argument = "WHAT", .initial = "none",
     .free = true, .help = "What the backward pass computes again instead of keeping it: blocks takes less memory and about a third "
             "more time, and changes no bit"},
    {.name = "head-rows", .group = "Run", COUNT(head_rows, 0, HS_MANY), .argument = "N", .initial = "0",
     .free = true, .help = "Rows of a batch whose logits are in memory at a time; 0: as many as take 128 MiB. Few take more time; with "
             "exact levers no bit changes"},
    {.name = "seed", .group = "Run", COUNT(seed, 0, 0x1p63), .argument = "N", .initial = "1",
     .help = "Of initial weights, batches, built-in corpus and sample"},
    {.name = "max-time", .group = "Run", REAL(max_time, 0, 1e9), .argument = "SECONDS", .initial = "0", .of_command = true,
     .help = "Stop after the update in which this time is over, with a checkpoint; 0: no limit"},

    {.name = "checkpoint-every", .group = "Checkpoints", COUNT(checkpoint_every, 0, LONG_RUN), .argument = "N", .initial = "0", .free = true,
     .help = "Updates between checkpoints in the run's folder; 0: at the end alone, or where the run stops before"},
    {.name = "keep-checkpoints", .group = "Checkpoints", COUNT(keep_checkpoints, 1, LONG_RUN), .argument = "N", .initial = "2", .free = true,
     .help = "Newest checkpoints that are kept, and beside them the one of the lowest held-out loss"},
    {.name = "resume", .group = "Checkpoints", FLAG(resume), .command_line_only = true,
     .help = "Go on from the newest good checkpoint in --out, with the configuration that is stored there; start anew "
             "where there is none"},
    {.name = "allow-changes", .group = "Checkpoints", FLAG(allow_changes), .command_line_only = true,
     .help = "With --resume: options that this command gives may change the numbers of the run"},
    {.name = "dump-overflow", .group = "Checkpoints", COUNT(dump_overflow, 0, LONG_RUN), .argument = "N", .initial = "0", .of_command = true,
     .help = "Skipped attempts to keep, the first N of this command, as files in the run's folder that trainer replay runs again"},

    {.name = "out", .group = "Output", TEXT(out), .argument = "DIR",
     .of_command = true, .help = "Folder for records.jsonl and checkpoints; without it: runs/ and a name made of time and precision"},
    {.name = "records", .group = "Output", TEXT(records), .argument = "FILE",
     .of_command = true, .help = "Where records go instead; - is standard output. There are no checkpoints then, unless --out is given too"},
    {.name = "trace", .group = "Output", COUNT(trace, 0, LONG_RUN), .argument = "N", .initial = "0",
     .free = true, .help = "Updates between those whose records tell of every tensor how large it is and of every product what "
             "rounding makes of the numbers that it reads; 0: none. No result depends on it"},
    {.name = "dry-run", .group = "Output", FLAG(dry_run),
     .help = "Train nothing: check options and data, and print one JSON object with the memory that the run will take"},
    {.name = "quiet", .group = "Output", FLAG(quiet), .help = "No progress, no summary"},
    {.name = "config", .group = "Output", TEXT(config), .command_line_only = true, .argument = "FILE",
     .help = "JSON object with options by their names, config and help excepted, such as {\"steps\": 500}; the command line wins"},
    {.name = "help", .group = "Output", FLAG(help), .command_line_only = true, .help = "This text"},
};
/* clang-format on */

_Static_assert(sizeof TABLE / sizeof TABLE[0] <= HS_OPTIONS_MAX, "hs_options.sources must have a place for each");

const hs_option *hs_option_table(size_t *count) {
    *count = sizeof TABLE / sizeof TABLE[0];
    return TABLE;
}

const hs_option *hs_option_find(const char *name) {
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; ++i)
        if (strcmp(TABLE[i].name, name) == 0)
            return &TABLE[i];
    return NULL;
}
