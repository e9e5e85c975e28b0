/* SiLU, s = 1/(1+exp(-g)), and its slope s*(1+g*(1-s)) (policy, section 3). */
#ifndef HS_SHADER_SILU
#define HS_SHADER_SILU

double hs_silu(double g) {
    precise double y = g * hs_sigmoid(g);
    return y;
}

double hs_silu_slope(double g) {
    precise double s = hs_sigmoid(g);
    precise double slope = s * (1.0lf + g * (1.0lf - s));
    return slope;
}

#endif
