/*
 * The sum of a tensor (policy, section 3): rows of 4096 elements, then the row sums. Scratch holds the row sums, and
 * behind them the losses of rows, where those are what is summed.
 * Options: 1 squares of input 0 times input 1, 2 losses, else input 0 itself.
 */
#ifndef HS_SHADER_TENSOR_SUM
#define HS_SHADER_TENSOR_SUM

#define HS_SUM_ROW 4096u
#define HS_SUM_SQUARES 1u
#define HS_SUM_LOSSES 2u

/* Elements to be summed; operands that are summed have no gaps. */
uint64_t hs_sum_count() {
    uint64_t rows = uint64_t(hs_rows(HS_IN(0)));
    return hs_options == HS_SUM_LOSSES ? rows : rows * uint64_t(hs_columns(HS_IN(0)));
}

/* Rows of 4096 among them. */
uint hs_sum_parts() {
    return uint((hs_sum_count() + uint64_t(HS_SUM_ROW - 1u)) / uint64_t(HS_SUM_ROW));
}

#endif
