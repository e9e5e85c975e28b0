/* Usage errors of the trainer: exit status, and words that say what and where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "support/program.h"
#include "trainer/options/table.c"

typedef struct mistake {
    const char *arguments[8];
    int status;
    const char *words[3]; /* each stands in the message */
} mistake;

static void expect(const mistake *m) {
    hs_test_program run = hs_test_run(m->arguments);
    const char *last = m->arguments[0];
    for (size_t i = 0; m->arguments[i] != NULL; ++i)
        last = m->arguments[i];
    cr_expect_eq(run.status, m->status, "... %s: status %d: %s", last, run.status, run.err);
    cr_expect_eq(run.out_size, 0, "... %s: an error writes nothing to standard output", last);
    cr_expect_eq(strncmp(run.err, "trainer: ", 9), 0, "... %s: %s", last, run.err);
    for (size_t i = 0; i < 3 && m->words[i] != NULL; ++i)
        cr_expect_not_null(strstr(run.err, m->words[i]), "... %s: no '%s' in: %s", last, m->words[i], run.err);
    hs_test_program_free(&run);
}

static void expect_all(const mistake *mistakes, size_t count) {
    for (size_t i = 0; i < count; ++i)
        expect(&mistakes[i]);
}

#define EXPECT_ALL(list) expect_all(list, sizeof(list) / sizeof((list)[0]))

Test(usage, unknown_words) {
    static const mistake list[] = {
        {{"trane"}, 2, {"unknown command 'trane'", "--help"}},
        {{"sample"}, 2, {"name a checkpoint", "trainer sample --help"}},
        {{"sample", "a", "b"}, 2, {"unexpected word 'b'"}},
        {{"sample", "a", "--token", "3"}, 2, {"did you mean --tokens? "}},
        {{"sample", "a", "--tokens", "0"}, 2, {"--tokens 0", "at least 1"}},
        {{"sample", "a", "--top-p", "0"}, 2, {"--top-p 0", "above 0"}},
        {{"sample", "a", "--top-p", "1.1"}, 2, {"--top-p 1.1", "at most 1"}},
        {{"sample", "a", "--repetition-penalty", "0"}, 2, {"--repetition-penalty 0"}},
        {{"sample", "a", "--stop", ""}, 2, {"--stop ''"}},
        {{"sample", "a", "--quiet=1"}, 2, {"--quiet takes no value"}},
        {{"sample", "a", "--seed"}, 2, {"'--seed' needs a value"}},
        {{"sample", "a", "--prompt", "x", "--prompt-tokens", "3"}, 2, {"--prompt and --prompt-tokens"}},
        {{"sample", "nowhere"}, 3, {"nowhere"}},
        {{"eval"}, 2, {"name a checkpoint", "trainer eval --help"}},
        {{"eval", "a"}, 2, {"no data", "--data"}},
        {{"eval", "a", "--data", "b", "--token-type", "fp8"}, 2, {"fp8", "auto, bytes, uint16, uint32"}},
        {{"eval", "nowhere", "--data", "b"}, 3, {"nowhere"}},
        {{"levers", "--jason"}, 2, {"'--jason'", "trainer levers --help"}},
        {{"levers", "all"}, 2, {"unexpected word 'all'", "options alone"}},
        {{"levers", "--threads", "many"}, 2, {"--threads many", "whole number"}},
        {{"levers", "--threads"}, 2, {"'--threads' needs a value"}},
        {{"levers", "--threads", ""}, 2, {"--threads '':", "whole number"}},
        {{"verify", "--with", "1%"}, 2, {"trainer train --help"}},
        {{"compare"}, 2, {"give --ours and --theirs", "trainer compare --help"}},
        {{"compare", "a"}, 2, {"unexpected word 'a'"}},
        {{"compare", "--ours", "a", "--theirs", "b", "--target", "-1"}, 2, {"--target -1"}},
        {{"compare", "--ours", "nowhere", "--theirs", "b"}, 3, {"nowhere"}},
        {{"export"}, 2, {"name a checkpoint", "trainer export --help"}},
        {{"export", "a", "b"}, 2, {"unexpected word 'b'"}},
        {{"export", "a", "--dtype", "fp8"}, 2, {"--dtype fp8", "f32, bf16, f16, f64"}},
        {{"export", "a", "--out", ""}, 2, {"--out ''"}},
        {{"export", "a", "--over"}, 2, {"did you mean --overwrite?"}},
        {{"export", "nowhere"}, 3, {"nowhere"}},
        {{"replay"}, 2, {"name a file of an attempt", "trainer replay --help"}},
        {{"replay", "f", "--backend", "tpu"}, 2, {"--backend tpu", "cpu-reference"}},
        {{"replay", "f", "--threads", "1025"}, 2, {"--threads 1025", "at most"}},
        {{"replay", "nowhere"}, 3, {"nowhere"}},
        {{"train", "--dump-overflow", "1", "--records", "f"}, 2, {"--dump-overflow", "--out"}},
        {{"inspect"}, 2, {"no file", "trainer inspect --help"}},
        {{"inspect", "--jason", "f"}, 2, {"'--jason'", "trainer inspect --help"}},
        {{"inspect", "f", "g"}, 2, {"unexpected word 'g'"}},
        {{"inspect", "--json=1", "f"}, 2, {"'--json' takes no value"}},
        {{"inspect", "--token-type"}, 2, {"'--token-type' needs a value"}},
        {{"inspect", "--token-type", "fp8", "f"}, 2, {"fp8", "auto, bytes, uint16, uint32"}},
        {{"--steps", "3"}, 2, {"'--steps'", "train"}},
        {{"--precision", "bf16", "extra"}, 2, {"unexpected word 'extra'", "command"}},
        {{"--precision"}, 2, {"'--precision' needs a value"}},
        {{"--precision", "fp8"}, 2, {"fp8", "fp16, bf16, f64"}},
        {{"--precision", ""}, 2, {"--precision '':"}},
        {{"--precisions=fp16"}, 2, {"unknown option"}},
        {{"-p", "fp16"}, 2, {"unknown option '-p'"}},
        {{"--help=all"}, 2, {"--help=all", "takes no value"}},
        {{"--version=2"}, 2, {"--version=2", "takes no value"}},
        {{"train", "--stepz", "3"}, 2, {"unknown option '--stepz'", "trainer train --help"}},
        {{"train", "-x"}, 2, {"unknown option '-x'"}},
        {{"train", "-xy"}, 2, {"unknown option '-xy'"}},
        {{"train", "---steps", "3"}, 2, {"unknown option '---steps'"}},
        {{"train", "--=3"}, 2, {"unknown option '--'"}},
        {{"train", "--", "--steps"}, 2, {"unexpected word '--steps'"}},
        {{"train", "-"}, 2, {"unexpected word '-'"}},
        {{"train", "--steps"}, 2, {"'--steps' needs a value"}},
        {{"train", "--trace", "--out", "f"}, 2, {"'--trace' needs a value", "'--out' is an option", "--trace=--out"}},
        {{"sample", "a", "--prompt", "--quiet"}, 2, {"'--prompt' needs a value", "--prompt=--quiet"}},
        {{"sample", "a", "--tokens", "--none"}, 2, {"--tokens --none", "whole number"}},
        {{"levers", "--explain", "--json"}, 2, {"'--explain' needs a value", "'--json' is an option"}},
        {{"train", "--quiet=yes"}, 2, {"--quiet takes no value"}},
        {{"train", "novel.txt"}, 2, {"unexpected word 'novel.txt'", "--data"}},
    };
    EXPECT_ALL(list);
}

/* An abbreviation that one version takes could mean another option in the next. */
Test(usage, abbreviated_options_are_refused_and_say_what_was_meant) {
    static const mistake list[] = {
        {{"train", "--s", "3"}, 2, {"'--s'", "did you mean --steps or ", " or --seed? "}},
        {{"train", "--step", "3"}, 2, {"unknown option '--step'", "did you mean --steps?"}},
        {{"train", "--step=3"}, 2, {"unknown option '--step'", "did you mean --steps?"}},
        {{"train", "--eval", "3"}, 2, {"'--eval'", "--eval-every or --eval-batches?"}},
        {{"train", "--quie"}, 2, {"'--quie'", "--quiet?"}},
        {{"train", "--hel"}, 2, {"'--hel'", "--help?"}},
        {{"train", "--h"}, 2, {"'--h'", "--held-out", "--help?"}},
        {{"train", "--min", "1"}, 2, {"'--min'", "--min-learning-rate or --min-loss-scale?"}},
        {{"train", "-steps", "3"}, 2, {"'-steps'", "did you mean --steps?"}},
        {{"--prec", "f64"}, 2, {"'--prec'", "did you mean --precision?"}},
        {{"--prec=f64"}, 2, {"'--prec'", "did you mean --precision?"}},
        {{"--hel"}, 2, {"'--hel'", "did you mean --help?"}},
        {{"--v"}, 2, {"'--v'", "did you mean --version?"}},
    };
    EXPECT_ALL(list);
}

/* Whatever options there will be: no beginning of a name is taken for it. */
Test(usage, no_beginning_of_any_option_is_an_option) {
    size_t rows;
    const hs_option *table = hs_option_table(&rows);
    for (size_t i = 0; i < rows; ++i) {
        for (size_t length = 1; length < strlen(table[i].name); ++length) {
            char name[64], word[80];
            snprintf(name, sizeof name, "%.*s", (int)length, table[i].name);
            if (hs_option_find(name) != NULL)
                continue;
            snprintf(word, sizeof word, "--%s", name);
            const mistake m = {{"train", word, "1"}, 2, {"unknown option", table[i].name}};
            expect(&m);
        }
    }
}

Test(usage, values_that_are_no_numbers_or_out_of_range) {
    static const mistake list[] = {
        {{"train", "--steps", "12x"}, 2, {"--steps 12x", "whole number"}},
        {{"train", "--steps", ""}, 2, {"--steps '':", "whole number"}},
        {{"train", "--steps", " 5"}, 2, {"--steps ' 5':", "whole number"}},
        {{"train", "--steps", "-5"}, 2, {"--steps -5", "whole number of at least 1"}},
        {{"train", "--steps", "1e3"}, 2, {"whole number"}},
        {{"train", "--steps", "0"}, 2, {"--steps 0", "at least 1"}},
        {{"train", "--max-time", "abc"}, 2, {"--max-time abc: give a number of at least 0\n"}},
        {{"train", "--kv-heads", "few"}, 2, {"--kv-heads few: give a whole number of at least 0\n"}},
        {{"train", "--seed", "99999999999999999999"}, 2, {"--seed", "at most"}},
        {{"train", "--seed", "9223372036854775808"}, 2, {"--seed", "at most"}},
        {{"train", "--context", "0"}, 2, {"--context 0", "at least 1"}},
        {{"train", "--batch-size", "0"}, 2, {"--batch-size 0"}},
        {{"train", "--micro-batches", "0"}, 2, {"--micro-batches 0"}},
        {{"train", "--replicas", "0"}, 2, {"--replicas 0"}},
        {{"train", "--layers", "0"}, 2, {"--layers 0"}},
        {{"train", "--heads", "0"}, 2, {"--heads 0"}},
        {{"train", "--width", "99999999999"}, 2, {"--width", "at most"}},
        {{"train", "--learning-rate", "fast"}, 2, {"--learning-rate fast", "number"}},
        {{"train", "--learning-rate", "nan"}, 2, {"--learning-rate nan"}},
        {{"train", "--learning-rate", "inf"}, 2, {"--learning-rate inf"}},
        {{"train", "--learning-rate", "-1"}, 2, {"--learning-rate -1", "at least 0"}},
        {{"train", "--learning-rate", "1e-3kg"}, 2, {"1e-3kg"}},
        {{"train", "--beta1", "1"}, 2, {"--beta1 1", "below 1"}},
        {{"train", "--epsilon", "0"}, 2, {"--epsilon 0", "above 0"}},
        {{"train", "--grad-clip", "0"}, 2, {"--grad-clip 0", "above 0", "1e+300"}},
        {{"train", "--held-out", "1"}, 2, {"--held-out 1", "below 1"}},
        {{"train", "--growth-interval", "0"}, 2, {"--growth-interval 0"}},
        {{"train", "--precision", "int8"}, 2, {"--precision int8", "bf16, fp16, f64"}},
        {{"train", "--backend", "tpu"}, 2, {"--backend tpu", "cpu-reference"}},
        {{"train", "--schedule", "linear"}, 2, {"--schedule linear", "constant, cosine"}},
        {{"train", "--init", "zero"}, 2, {"--init zero", "normal, xavier"}},
        {{"train", "--threads", "1025"}, 2, {"--threads 1025", "at most"}},
        {{"train", "--prompt", ""}, 2, {"--prompt '':", "at least one"}},
        {{"train", "--out", ""}, 2, {"--out", "at least one"}},
        {{"train", "--records", ""}, 2, {"--records", "at least one"}},
        {{"train", "--config", ""}, 3, {"configuration file"}},
    };
    EXPECT_ALL(list);
}

Test(usage, options_that_contradict_each_other) {
    static const mistake list[] = {
        {{"train", "--width", "60", "--heads", "8"}, 2, {"--heads 8", "--width 60", "divide"}},
        {{"train", "--width", "12", "--heads", "4"}, 2, {"--width 12", "--heads 4", "odd width 3"}},
        {{"train", "--heads", "4", "--kv-heads", "3"}, 2, {"--kv-heads 3", "--heads 4"}},
        {{"train", "--heads", "2", "--kv-heads", "4"}, 2, {"--kv-heads 4", "--heads 2"}},
        {{"train", "--learning-rate", "1e-4", "--min-learning-rate", "1e-3"}, 2, {"--min-learning-rate", "0.0001"}},
        {{"train", "--steps", "10", "--warmup-steps", "11"}, 2, {"--warmup-steps 11", "--steps 10"}},
        {{"train", "--precision", "fp16", "--loss-scale", "1000"}, 2, {"--loss-scale 1000", "power of two"}},
        {{"train", "--precision", "fp16", "--max-loss-scale", "65535"}, 2, {"--max-loss-scale 65535"}},
        {{"train", "--precision", "fp16", "--min-loss-scale", "131072"}, 2, {"--min-loss-scale 131072", "65536"}},
        {{"train", "--precision", "bf16", "--loss-scale", "8"}, 2, {"--loss-scale 8", "--max-loss-scale 1"}},
        {{"train", "--allow-changes", "--out", "run"}, 2, {"--allow-changes goes with --resume"}},
    };
    EXPECT_ALL(list);
}

Test(usage, a_backend_that_is_not_there_is_5) {
    /* Without a driver, whatever the machine has. */
    cr_assert_eq(setenv("VK_ICD_FILENAMES", "/nowhere", 1), 0);
    static const mistake list[] = {{{"train", "--backend", "vulkan", "--records", "-"}, 5, {"Vulkan"}}};
    EXPECT_ALL(list);
}

Test(usage, version_and_help) {
    hs_test_program run = HS_TEST_RUN("--version");
    cr_assert_eq(run.status, 0);
    cr_assert_str_eq(run.out, "halfstep 0.1.0\n");
    hs_test_program_free(&run);
    run = HS_TEST_RUN("--help");
    cr_assert_eq(run.status, 0);
    cr_assert_not_null(strstr(run.out, "trainer train"));
    cr_assert_str_empty(run.err);
    hs_test_program_free(&run);
}
