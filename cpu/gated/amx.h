/* The levers cpu.amx-bf16 and cpu.amx-fp16: products on AMX tiles. */
#ifndef HS_CPU_GATED_AMX_H
#define HS_CPU_GATED_AMX_H

#include "cpu/kernel.h"

/* ACTIVE where the processor has AMX-TILE and AMX-BF16 (and AVX-512, for packing), the system saves the tiles, and it
 * gives this process leave to use them, which is asked for. */
hstep_lever_state hs_detect_amx(void);
void hs_amx_describe(hs_lever_findings *findings);

#endif
