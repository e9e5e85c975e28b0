/* The lever cpu.avx512-bf16: products in bf16 by vdpbf16ps (kit_avx512bf16_14x32.c). */
#ifndef HS_CPU_EXACT_AVX512BF16_H
#define HS_CPU_EXACT_AVX512BF16_H

#include <halfstep/context.h>

/* ACTIVE where the processor has the instruction, it adds in the order that is documented, and it does more than f32
 * arithmetic in the same time; SLOWER where only the last fails. */
hstep_lever_state hs_detect_avx512bf16(void);

#endif
