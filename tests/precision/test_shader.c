/* precision/arithmetic.h as a shader: glslang must take it, and leave a driver no freedom to fuse or substitute. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/vectors.h"

enum { IDS = 4096, WORDS = 1 << 22 };

/* glslang's listing of the shader; the test is skipped where the tool is missing. The caller frees it. */
static char *listing(void) {
    if (strstr(HS_TEST_GLSLANG, "NOTFOUND") != NULL)
        cr_skip_test("skipped: glslangValidator is not installed");
    FILE *pipe = popen(HS_TEST_GLSLANG " -H -o /dev/null -I" HS_TEST_SOURCE " " HS_TEST_SOURCE
                                       "/tests/precision/arithmetic.comp 2>&1",
                       "r");
    cr_assert(pipe != NULL);
    char *text = calloc(WORDS, 1);
    cr_assert(text != NULL);
    size_t length = fread(text, 1, WORDS - 1, pipe);
    int status = pclose(pipe);
    cr_assert_eq(status, 0, "glslangValidator refuses arithmetic.h:\n%s", text);
    cr_assert_lt(length, WORDS - 1);
    return text;
}

static bool has_word(const char *line, const char *word) {
    size_t length = strlen(word);
    for (const char *at = strstr(line, word); at != NULL; at = strstr(at + 1, word))
        if (at > line && at[-1] == ' ' && (at[length] == ' ' || at[length] == 0))
            return true;
    return false;
}

Test(shader, keeps_every_rounding_to_itself) {
    char *text = listing();
    static bool exact[IDS];
    size_t decorated = 0, computed = 0, divisions = 0;
    unsigned id;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        cr_assert(!has_word(line, "ExtInst"), "a built-in function whose bits drivers choose: %s", line);
        if (sscanf(line, " Decorate %u", &id) == 1 && has_word(line, "NoContraction")) {
            cr_assert_lt(id, (unsigned)IDS);
            exact[id] = true;
            decorated++;
        }
        bool divides = has_word(line, "FDiv");
        if (!divides && !has_word(line, "FMul") && !has_word(line, "FAdd") && !has_word(line, "FSub"))
            continue;
        cr_assert_eq(sscanf(line, " %u", &id), 1);
        cr_assert(id < IDS && exact[id], "may be fused: %s", line);
        computed++;
        divisions += divides;
    }
    /* exp, log and sigmoid have about 65 operations; a division each in log and sigmoid. */
    cr_assert(decorated >= 60 && computed >= 60 && divisions == 2, "%zu decorated, %zu computed", decorated, computed);
    free(text);
}

/* A constant that glslang read otherwise than the C compiler would change bits between processor and shader. */
Test(shader, spells_each_constant_alike_in_both_languages) {
    FILE *file = fopen(HS_TEST_SOURCE "/precision/arithmetic.h", "r");
    cr_assert(file != NULL);
    static char header[1 << 16];
    size_t length = fread(header, 1, sizeof header - 1, file);
    fclose(file);
    cr_assert_lt(length, sizeof header - 1);
    char *text = listing();
    size_t found = 0;
    for (const char *at = strstr(header, "HS_F64("); at != NULL; at = strstr(at + 1, "HS_F64(")) {
        double value;
        uint64_t bits;
        if (sscanf(at, "HS_F64(%lf, %" SCNx64 "UL", &value, &bits) != 2)
            continue;
        found++;
        cr_assert_eq(bits, hs_test_bits(value), "%.17g is 0x%016" PRIx64, value, hs_test_bits(value));
        char words[64];
        snprintf(words, sizeof words, " Constant %" PRIu32 " %" PRIu32 "\n", (uint32_t)bits, (uint32_t)(bits >> 32));
        cr_assert(strstr(text, words) != NULL, "%.17g does not arrive in the shader", value);
    }
    cr_assert_gt(found, 20);
    free(text);
}
