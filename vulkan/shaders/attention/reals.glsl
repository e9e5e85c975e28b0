/*
 * What products are made of: f32 from operands of 16 bits in the mixed precisions, f64 throughout where the shader says
 * HS_ALL_F64 before it includes this.
 */
#ifdef HS_ALL_F64
#define HS_REAL double

double hs_to_operand(double value) {
    return value;
}

double hs_fetch_operand(uint slot, uint64_t row, uint column) {
    return hs_load(slot, row, column);
}

double hs_from_sum(double sum) {
    return sum;
}
#else
#define HS_REAL float

/* Q_h of a value, as an operand of a product. */
float hs_to_operand(double value) {
    return hs_half_to_f32(hs_precision, hs_half_from_f64(hs_precision, value));
}

float hs_fetch_operand(uint slot, uint64_t row, uint column) {
    return hs_load_operand(slot, row, column);
}

/* Q_h of a chain's sum: the result of a product. */
double hs_from_sum(float sum) {
    return hs_half_to_f64(hs_precision, hs_half_from_f32(hs_precision, sum));
}
#endif
