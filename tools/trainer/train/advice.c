#include "trainer/train/advice.h"

#include <stdbool.h>
#include <stdio.h>

void hs_advise_on_overflow(const hs_options *options, double loss_scale, char *text, size_t size) {
    const bool fp16 = options->in_use[HSTEP_PRECISION_FP16];
    const char *scale = "", *wider = "";
    if (fp16)
        wider = options->rule_count > 0
                    ? ", or take bf16 for fp16 in --precision and --precision-for, whose range is wider"
                    : ", or use --precision bf16, whose range is wider";
    if (loss_scale > options->scaler.minimum)
        scale = "start from a lower --loss-scale";
    else if (loss_scale > 1)
        scale = "lower --min-loss-scale and --loss-scale";
    snprintf(text, size, "%s%slower --learning-rate%s", scale, scale[0] == '\0' ? "" : fp16 ? ", " : " or ", wider);
}
