/* The sum of a row in the policy's order (section 3). */
#ifndef HS_SHADER_SUMS
#define HS_SHADER_SUMS

#define HS_LANES 32u

shared double hs_lanes[HS_LANES];

/*
 * The sum of 32 lanes, folded by 16, 8, 4, 2, 1, for all invocations of the group. The first 32 give a lane each: the
 * sum from +0 of the elements i = invocation (mod 32), ascending. All have to call it.
 */
double hs_fold_lanes(double lane) {
    uint j = gl_LocalInvocationID.x;
    barrier(); /* nobody reads the last sum any more */
    if (j < HS_LANES)
        hs_lanes[j] = lane;
    for (uint width = HS_LANES / 2u; width > 0u; width /= 2u) {
        barrier();
        if (j < width) {
            precise double sum = hs_lanes[j] + hs_lanes[j + width];
            hs_lanes[j] = sum;
        }
    }
    barrier();
    return hs_lanes[0];
}

/* The largest of the first 32 invocations' values, for all of the group. Of several zeros any; NaN loses, or not. */
double hs_fold_maximum(double lane) {
    uint j = gl_LocalInvocationID.x;
    barrier();
    if (j < HS_LANES)
        hs_lanes[j] = lane;
    for (uint width = HS_LANES / 2u; width > 0u; width /= 2u) {
        barrier();
        if (j < width && hs_lanes[j + width] > hs_lanes[j])
            hs_lanes[j] = hs_lanes[j + width];
    }
    barrier();
    return hs_lanes[0];
}

#endif
