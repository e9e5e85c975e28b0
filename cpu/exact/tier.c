#include "cpu/exact/kernels.h"
#include "cpu/exact/pairs/avx512bf16.h"
#include "cpu/exact/product/kit.h"
#include "cpu/gated/amx.h"
#include "cpu/gated/openblas.h"
#include "cpu/processor.h"

enum { COMPACT, AVX512BF16, AVX512, AVX2, PORTABLE, OPENBLAS, AMX_BF16, AMX_FP16, LEVERS };

/* Loads and stores of 16 bits are part of every kernel; the lever says whether plans may ask for them. */
static hstep_lever_state detect_compact(void) { return HSTEP_LEVER_ACTIVE; }

#ifdef HS_BUILT_AVX512BF16
#define detect_avx512bf16 hs_detect_avx512bf16
#else
static hstep_lever_state detect_avx512bf16(void) { return HSTEP_LEVER_NOT_BUILT; }
#endif

static const hs_cpu_lever levers[LEVERS] = {
    [COMPACT] = {.name = "cpu.compact",
                 .exact = true,
                 .detect = detect_compact,
                 .active = "operands and results of products stand in 16 bits where that loses nothing"},
    [AVX512BF16] = {.name = "cpu.avx512-bf16",
                    .exact = true,
                    .detect = detect_avx512bf16,
                    .active = "products in bf16 by vdpbf16ps, two steps of a chain at a time",
                    .missing = "the processor or the system lacks AVX512-BF16, its vdpbf16ps is no faster than f32 "
                               "arithmetic, or the compiler did not know it"},
    [AVX512] = {.name = "cpu.avx512",
                .exact = true,
                .detect = hs_detect_avx512,
                .active = "vectors of 512 bits",
                .missing = "the processor or the system lacks AVX-512 F, BW, DQ or VL"},
    [AVX2] = {.name = "cpu.avx2",
              .exact = true,
              .detect = hs_detect_avx2,
              .active = "vectors of 256 bits, with FMA in products",
              .missing = "the processor or the system lacks AVX2, FMA or F16C"},
    [PORTABLE] = {.name = "cpu.portable", .exact = true, .active = "plain C, threaded, runs on every processor"},
    [OPENBLAS] = {.name = "cpu.openblas",
                  .detect = hs_openblas_detect,
                  .active = "OpenBLAS dgemm",
                  .missing = "libopenblas.so.0 cannot be loaded, or lacks cblas_dgemm (Debian: libopenblas0)",
                  .precision = HSTEP_PRECISION_F64,
                  .accepts = hs_openblas_accepts,
                  .refusal = hs_openblas_refusal,
                  .describe = hs_openblas_describe},
    [AMX_BF16] = {.name = "cpu.amx-bf16",
                  .detect = hs_detect_amx,
                  .active = "products in bf16 on AMX tiles",
                  .missing = "processor, system or build lacks AMX-BF16 tiles or AVX-512",
                  .precision = HSTEP_PRECISION_BF16,
                  .flushes_subnormals = true,
                  .describe = hs_amx_describe},
    [AMX_FP16] = {.name = "cpu.amx-fp16",
                  .detect = hs_detect_amx,
                  .active = "products in fp16 on AMX tiles, numbers in two parts of bf16",
                  .missing = "it needs what cpu.amx-bf16 needs",
                  .precision = HSTEP_PRECISION_FP16,
                  .describe = hs_amx_describe},
};

/* The kernels of one lever. */
#define HS_ROWS(lever, target)                                                                                         \
    {HS_OP_MATMUL, lever, hs_kit_matmul, hs_kit_matmul_scratch, &hs_kits_##target},                                    \
        {HS_OP_GATHER, lever, HS_JOINED(gather, target), NULL, NULL},                                                  \
        {HS_OP_GATHER_BACKWARD, lever, HS_JOINED(gather_backward, target), NULL, NULL},                                \
        {HS_OP_STORE_ROWS, lever, HS_JOINED(store_rows, target), NULL, NULL},                                          \
        {HS_OP_RMSNORM, lever, HS_JOINED(rmsnorm, target), HS_JOINED(rmsnorm_scratch, target), NULL},                  \
        {HS_OP_RMSNORM_BACKWARD_INPUT, lever, HS_JOINED(rmsnorm_backward_input, target),                               \
         HS_JOINED(rmsnorm_scratch, target), NULL},                                                                    \
        {HS_OP_RMSNORM_BACKWARD_GAIN, lever, HS_JOINED(rmsnorm_backward_gain, target),                                 \
         HS_JOINED(sum_rows_scratch, target), NULL},                                                                   \
        {HS_OP_ROTARY, lever, HS_JOINED(rotary, target), HS_JOINED(rotary_scratch, target), NULL},                     \
        {HS_OP_ROTARY_BACKWARD, lever, HS_JOINED(rotary_backward, target), HS_JOINED(rotary_scratch, target), NULL},   \
        {HS_OP_ATTENTION, lever, HS_JOINED(attention, target), HS_JOINED(attention_scratch, target),                   \
         &hs_kits_##target},                                                                                           \
        {HS_OP_ATTENTION_BACKWARD, lever, HS_JOINED(attention_backward, target),                                       \
         HS_JOINED(attention_backward_scratch, target), &hs_kits_##target},                                            \
        {HS_OP_SWIGLU, lever, HS_JOINED(swiglu, target), NULL, NULL},                                                  \
        {HS_OP_SWIGLU_BACKWARD, lever, HS_JOINED(swiglu_backward, target), NULL, NULL},                                \
        {HS_OP_ADD, lever, HS_JOINED(add, target), NULL, NULL},                                                        \
        {HS_OP_CROSS_ENTROPY, lever, HS_JOINED(cross_entropy, target), HS_JOINED(cross_entropy_scratch, target),       \
         NULL},                                                                                                        \
        {HS_OP_CROSS_ENTROPY_BACKWARD, lever, HS_JOINED(cross_entropy_backward, target),                               \
         HS_JOINED(cross_entropy_backward_scratch, target), NULL},                                                     \
        {HS_OP_ADD_BIAS, lever, HS_JOINED(add_bias, target), NULL, NULL},                                              \
        {HS_OP_SUM_ROWS, lever, HS_JOINED(sum_rows, target), HS_JOINED(sum_rows_scratch, target), NULL},               \
        {HS_OP_MULTIPLY, lever, HS_JOINED(multiply, target), NULL, NULL},                                              \
        {HS_OP_SCALE, lever, HS_JOINED(scale, target), NULL, NULL},                                                    \
        {HS_OP_SUM, lever, HS_JOINED(sum, target), HS_JOINED(sum_scratch, target), NULL},                              \
        {HS_OP_FILL, lever, HS_JOINED(fill, target), NULL, NULL},                                                      \
        {HS_OP_TRANSPOSE, lever, HS_JOINED(transpose, target), NULL, NULL},                                            \
        {HS_OP_SOFTMAX, lever, HS_JOINED(softmax, target), NULL, NULL},                                                \
        {HS_OP_SOFTMAX_BACKWARD, lever, HS_JOINED(softmax_backward, target), NULL, NULL},                              \
        {HS_OP_LOG, lever, HS_JOINED(log, target), NULL, NULL},                                                        \
        {HS_OP_LOG_BACKWARD, lever, HS_JOINED(log_backward, target), NULL, NULL},                                      \
        {HS_OP_SILU, lever, HS_JOINED(silu, target), NULL, NULL},                                                      \
        {HS_OP_SILU_BACKWARD, lever, HS_JOINED(silu_backward, target), NULL, NULL},                                    \
        {HS_OP_SQUARE_SUM, lever, HS_JOINED(square_sum, target), HS_JOINED(sum_scratch, target), NULL},                \
        {HS_OP_MEASURE, lever, HS_JOINED(measure, target), NULL, NULL}, {                                              \
        HS_OP_ADAMW, lever, HS_JOINED(adamw, target), NULL, NULL                                                       \
    }

/* Rows of gated levers stand first, and those of faster ones go before those of the portable kernels, which serve
 * whatever is left. */
static const hs_kernel_entry entries[] = {
    {HS_OP_MATMUL, OPENBLAS, hs_matmul_openblas_f64, NULL, NULL},
#ifdef HS_BUILT_AMX
    {HS_OP_MATMUL, AMX_BF16, hs_kit_matmul, hs_kit_matmul_scratch, &hs_kits_amx},
    {HS_OP_MATMUL, AMX_FP16, hs_kit_matmul, hs_kit_matmul_scratch, &hs_kits_amx},
#endif
#ifdef HS_BUILT_AVX512BF16
    {HS_OP_MATMUL, AVX512BF16, hs_kit_matmul, hs_kit_matmul_scratch, &hs_kits_avx512bf16},
#endif
#ifdef HS_X86_64
    HS_ROWS(AVX512, avx512),
    HS_ROWS(AVX2, avx2),
#endif
    HS_ROWS(PORTABLE, portable),
};

const hs_cpu_tier hs_cpu_exact_tier = {
    .name = "cpu",
    .locates = false,
    .levers = levers,
    .lever_count = LEVERS,
    .compact = COMPACT,
    .entries = entries,
    .entry_count = sizeof entries / sizeof entries[0],
};
