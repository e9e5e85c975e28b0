#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 64
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/rows/links.glsl"

/* Second stage: each row of dy finds the one behind it that goes to the same row of the table. */
void main() {
    uint own = hs_group() * HS_GROUP + gl_LocalInvocationID.x, rows = hs_rows(HS_IN(0));
    if (own >= rows)
        return;
    int target = hs_load_index(HS_IN(1), own);
    uint before = own, behind = own + 1u;
    while (before > 0u && hs_load_index(HS_IN(1), before - 1u) != target)
        before--;
    while (behind < rows && hs_load_index(HS_IN(1), behind) != target)
        behind++;
    hs_links().at[own] = (before == 0u ? HS_FIRST : 0u) | behind;
}
