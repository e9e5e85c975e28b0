/*
 * What the numbers of a tensor are like for a product that reads them (enum hs_measure): rows of 4096 elements, then
 * what was found in each. Scratch holds HS_MEASURES numbers for each row.
 */
#ifndef HS_SHADER_MEASURE
#define HS_SHADER_MEASURE

#define HS_MEASURE_ROW 4096u
#define HS_MEASURES 5u
#define HS_MEASURE_LARGEST 0u
#define HS_MEASURE_TO_ZERO 1u
#define HS_MEASURE_TO_SUBNORMAL 2u
#define HS_MEASURE_TO_INFINITY 3u
#define HS_MEASURE_NONFINITE 4u

shared double hs_found[HS_MEASURES][HS_GROUP];

uint64_t hs_measure_count() {
    return uint64_t(hs_rows(HS_IN(0))) * uint64_t(hs_columns(HS_IN(0)));
}

uint hs_measure_parts() {
    return uint((hs_measure_count() + uint64_t(HS_MEASURE_ROW - 1u)) / uint64_t(HS_MEASURE_ROW));
}

void hs_measure_merge(inout double into[HS_MEASURES], double more[HS_MEASURES]) {
    into[0] = more[0] > into[0] ? more[0] : into[0];
    for (uint i = 1u; i < HS_MEASURES; i++) {
        precise double sum = into[i] + more[i];
        into[i] = sum;
    }
}

/* What all invocations of the group found, in the first of them. Counts are whole numbers: their order is free. */
void hs_measure_fold(inout double found[HS_MEASURES]) {
    uint j = gl_LocalInvocationID.x;
    for (uint i = 0u; i < HS_MEASURES; i++)
        hs_found[i][j] = found[i];
    for (uint width = HS_GROUP / 2u; width > 0u; width /= 2u) {
        barrier();
        if (j < width) {
            double more[HS_MEASURES];
            for (uint i = 0u; i < HS_MEASURES; i++)
                more[i] = hs_found[i][j + width];
            hs_measure_merge(found, more);
            for (uint i = 0u; i < HS_MEASURES; i++)
                hs_found[i][j] = found[i];
        }
    }
}

#endif
