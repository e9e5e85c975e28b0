#version 460
#extension GL_GOOGLE_include_directive : require
#define HS_GROUP 64
#include "vulkan/shaders/common.glsl"
#include "vulkan/shaders/rows/links.glsl"

/* Last stage: the first row of dy that goes to a row of the table adds all that go there to it, ascending. */
void main() {
    hs_element e = hs_find_element(HS_IN(0));
    if (!e.there || (hs_links().at[e.row] & HS_FIRST) == 0u)
        return;
    uint64_t target = hs_row(HS_OUT(0), uint(hs_load_index(HS_IN(1), e.row)));
    double sum = hs_load(HS_OUT(0), target, e.column);
    for (uint r = e.row; r < hs_rows(HS_IN(0)); r = hs_links().at[r] & ~HS_FIRST) {
        precise double next = sum + hs_load(HS_IN(0), hs_row(HS_IN(0), r), e.column);
        sum = next;
    }
    hs_store(HS_OUT(0), target, e.column, sum);
}
