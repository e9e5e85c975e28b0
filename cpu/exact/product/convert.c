#include "cpu/exact/product/convert.h"

const hs_rounding *hs_rounding_of(hstep_precision precision) {
    static const hs_rounding fp16 = {0x1.8p42, 0x1p-14, 0x1p16};
    static const hs_rounding bf16 = {0x1.8p45, 0x1p-126, 0x1p128};
    switch (precision) {
    case HSTEP_PRECISION_FP16:
        return &fp16;
    case HSTEP_PRECISION_BF16:
        return &bf16;
    case HSTEP_PRECISION_F64:
        break;
    }
    return NULL;
}
