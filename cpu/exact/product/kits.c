#include "cpu/exact/product/kit.h"

hs_kits hs_kits_portable = {&hs_kit_portable_f64, &hs_kit_portable_fp16, &hs_kit_portable_bf16};

#ifdef HS_X86_64
hs_kits hs_kits_avx2 = {&hs_kit_avx2_f64, &hs_kit_avx2_fp16, &hs_kit_avx2_bf16};
hs_kits hs_kits_avx512 = {&hs_kit_avx512_f64, &hs_kit_avx512_fp16, &hs_kit_avx512_bf16};
#endif

#ifdef HS_BUILT_AVX512BF16
hs_kits hs_kits_avx512bf16 = {[HSTEP_PRECISION_BF16] = &hs_kit_avx512bf16};
#endif

#ifdef HS_BUILT_AMX
hs_kits hs_kits_amx = {[HSTEP_PRECISION_FP16] = &hs_kit_amx_fp16, [HSTEP_PRECISION_BF16] = &hs_kit_amx_bf16};
#endif
