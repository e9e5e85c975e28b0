/* What the half formats keep of a number (docs/policy.md, formats and conversion). */
#include <inttypes.h>
#include <stdio.h>

#include "trainer/demonstration/parts.h"

/* {format, input, bits, value}: the input as the format stores it. */
static json_t *stored(hstep_format format, double input) {
    const uint16_t bits = hstep_encode(format, input);
    char digits[8];
    snprintf(digits, sizeof digits, "0x%04" PRIx16, bits);
    return json_pack("{s:s, s:f, s:s, s:f}", "format", format == HSTEP_FP16 ? "fp16" : "bf16", "input", input, "bits",
                     digits, "value", hstep_decode(format, bits));
}

/* A step smaller than half of fp16's at 1: the f64 master takes it, its fp16 copy does not show it. */
static json_t *master_and_copy(void) {
    const double before = 1, step = 0.0001, after = before - step;
    json_t *example = stored(HSTEP_FP16, after);
    return json_pack("{s:f, s:f, s:f, s:o}", "master_before", before, "step", step, "master_after", after, "copy",
                     example);
}

int hs_demonstrate_representation(json_t *record) {
    const double tiny = 0x1p-25;
    json_t *values = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "tiny_fp16", stored(HSTEP_FP16, tiny), "tiny_bf16",
                               stored(HSTEP_BF16, tiny), "tiny_scaled_by_128_fp16", stored(HSTEP_FP16, tiny * 128),
                               "one_and_half_a_step_fp16", stored(HSTEP_FP16, 1 + 0x1p-11), "one_and_half_a_step_bf16",
                               stored(HSTEP_BF16, 1 + 0x1p-8), "master_and_copy_fp16", master_and_copy());
    return hs_put_part(record, "representation", values);
}
