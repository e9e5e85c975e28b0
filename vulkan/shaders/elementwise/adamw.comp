#version 460
#extension GL_GOOGLE_include_directive : require
#include "vulkan/shaders/common.glsl"

/* Scalars, in the order of hs_adamw_scalar (engine/backend.h). */
double hs_scalar(uint i) {
    return hs_load(HS_IN(1), hs_row(HS_IN(1), 0u), i);
}

/* Options: 1 the tensor decays, 2 there is a cast of the new weights. */
void main() {
    hs_element e = hs_find_element(HS_OUT(0));
    if (!e.there)
        return;
    double unscale = hs_scalar(0u), clip = hs_scalar(1u), beta1 = hs_scalar(2u), beta2 = hs_scalar(3u);
    double rate = hs_scalar(4u), root = hs_scalar(5u), epsilon = hs_scalar(6u), decay = hs_scalar(7u);
    double w = hs_get(HS_OUT(0), e);
    precise double g = (hs_get(HS_IN(0), e) * unscale) * clip;
    precise double m = beta1 * hs_get(HS_OUT(1), e) + (1.0lf - beta1) * g;
    precise double v = beta2 * hs_get(HS_OUT(2), e) + ((1.0lf - beta2) * g) * g;
    precise double divisor = sqrt(v) * root + epsilon;
    precise double step = (rate * m) / divisor;
    precise double kept = w;
    if ((hs_options & 1u) != 0u)
        kept = w - decay * w;
    precise double updated = kept - step;
    hs_put(HS_OUT(0), e, updated);
    hs_put(HS_OUT(1), e, m);
    hs_put(HS_OUT(2), e, v);
    if ((hs_options & 2u) != 0u)
        hs_put(HS_OUT(3), e, updated);
    hs_doubles(hs_row(HS_IN(0), e.row)).at[e.column] = 0.0lf;
}
