/* What the processor offers, and the system lets programs use. */
#ifndef HS_CPU_PROCESSOR_H
#define HS_CPU_PROCESSOR_H

#include <stdbool.h>

#include <halfstep/context.h>

/* HSTEP_LEVER_ACTIVE or HSTEP_LEVER_ABSENT; HSTEP_LEVER_NOT_BUILT on other kinds of processors. */
hstep_lever_state hs_detect_avx2(void);   /* AVX2, FMA and F16C */
hstep_lever_state hs_detect_avx512(void); /* AVX-512 F, BW, DQ and VL */

/* The same and AVX512-BF16. */
bool hs_has_avx512bf16(void);

#endif
