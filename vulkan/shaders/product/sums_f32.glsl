/* How f32 sums stand in f64: by bits, since some drivers delete conversions. */
float hs_narrow_sum(double sum) {
    return uintBitsToFloat(hs_f32_from_f64(sum));
}

double hs_widen_sum(float sum) {
    return hs_f32_to_f64(floatBitsToUint(sum));
}
