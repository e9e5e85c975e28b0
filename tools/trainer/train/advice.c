#include "trainer/train/advice.h"

#include <stdbool.h>
#include <stdio.h>

void hs_advise_on_overflow(const hs_options *options, double loss_scale, char *text, size_t size) {
    const bool fp16 = options->precision == HSTEP_PRECISION_FP16;
    const char *scale = "";
    if (loss_scale > options->scaler.minimum)
        scale = "start from a lower --loss-scale";
    else if (loss_scale > 1)
        scale = "lower --min-loss-scale and --loss-scale";
    snprintf(text, size, "%s%slower --learning-rate%s", scale,
             scale[0] == '\0' ? ""
             : fp16           ? ", "
                              : " or ",
             fp16 ? ", or use --precision bf16, whose range is wider" : "");
}
