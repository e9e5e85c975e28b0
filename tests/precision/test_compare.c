/* The f32 step, the figures of a comparison, and both sides of each rule (policy, section 8). */
#include <criterion/criterion.h>
#include <math.h>

#include "precision/compare.h"
#include "support/vectors.h"

Test(compare, measures_the_f32_step) {
    cr_assert_eq(hs_f32_step(1), 0x1p-23);
    cr_assert_eq(hs_f32_step(-1), 0x1p-23);
    cr_assert_eq(hs_f32_step(1 - 0x1p-30), 0x1p-23);
    cr_assert_eq(hs_f32_step(0), 0x1p-149);
    cr_assert_eq(hs_f32_step(1024), 0x1p-13);
    cr_assert_eq(hs_f32_step(INFINITY), INFINITY);
    json_t *root = hs_vectors_load("metrics.json"), *steps = hs_vectors_member(root, "f32_step");
    cr_assert_eq(json_array_size(steps), 4);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        json_t *item = json_array_get(steps, i);
        cr_assert_eq(hs_f32_step(hs_vectors_number(item, "v")), hs_vectors_number(item, "f32_step"));
    }
    json_decref(root);
}

/* All at once, and the same in pieces of `piece`. */
static hstep_comparison compare(size_t rows, size_t columns, size_t piece, const double *ours, const double *theirs,
                                const double *referee) {
    hs_comparing c = hs_compare_begin(columns, referee != NULL);
    for (size_t first = 0; first < rows * columns; first += piece) {
        const size_t left = rows * columns - first;
        hs_compare_add(&c, left < piece ? left : piece, ours + first, theirs + first,
                       referee != NULL ? referee + first : NULL);
    }
    return hs_compare_end(&c);
}

Test(compare, three_tensors_in_pieces_of_any_length) {
    const double ours[] = {1, 2, 3, -9, 5, 5}, theirs[] = {1, 2.5, 3, -9, 5, 4}, referee[] = {1, 2, 3.25, -8, 4, 5};
    for (size_t piece = 1; piece <= 6; piece++) {
        const hstep_comparison c = compare(2, 3, piece, ours, theirs, referee);
        cr_expect_eq(c.largest, 8);
        cr_expect_eq(c.f32_step, 0x1p-20);
        cr_expect_eq(c.error, 1);
        cr_expect_eq(c.our_error, 1);
        cr_expect_eq(c.their_error, 1);
        cr_expect_eq(c.elements, 6);
        cr_expect_eq(c.different, 2);
        cr_expect_eq(c.rows, 2);
        /* In the second row 5 and 5 are equal and the first counts, the referee's largest is the last. */
        cr_expect_eq(c.argmax_flips, 1);
    }
    const hstep_comparison first = compare(1, 3, 3, ours, theirs, referee);
    cr_expect_eq(first.error, 0.5);
    cr_expect_eq(first.our_error, 0.25);
    cr_expect_eq(first.argmax_flips, 0);
}

Test(compare, two_tensors_without_a_referee) {
    const double ours[] = {-7, 2, 1, 3}, theirs[] = {-8, 2, 3, 1};
    const hstep_comparison c = compare(2, 2, 4, ours, theirs, NULL);
    cr_expect_eq(c.largest, 8, "theirs");
    cr_expect_eq(c.error, 2);
    cr_expect(isnan(c.our_error) && isnan(c.their_error));
    cr_expect_eq(c.argmax_flips, 1, "against theirs");
    cr_expect_eq(hs_compare_judge(&c, HSTEP_RULE_REFEREE, 1), HSTEP_CLAIM_OUTSIDE, "nobody to ask");
    cr_expect_eq(compare(0, 2, 4, NULL, NULL, NULL).elements, 0);
}

static hstep_claim judge(double ours, double theirs, double referee, hstep_comparison_rule rule, double target) {
    const hstep_comparison c = compare(1, 1, 1, &ours, &theirs, &referee);
    return hs_compare_judge(&c, rule, target);
}

Test(compare, equal_bits_are_a_claim_of_their_own) {
    for (int rule = HSTEP_RULE_TARGET; rule <= HSTEP_RULE_REFEREE; rule++) {
        cr_expect_eq(judge(3, 3, 9, (hstep_comparison_rule)rule, 0), HSTEP_CLAIM_EQUAL_BITS);
        cr_expect_neq(judge(3, nextafter(3, 4), 9, (hstep_comparison_rule)rule, 1), HSTEP_CLAIM_EQUAL_BITS);
        cr_expect_neq(judge(0.0, -0.0, 0, (hstep_comparison_rule)rule, 1), HSTEP_CLAIM_EQUAL_BITS);
    }
}

Test(compare, the_target_has_two_sides) {
    cr_expect_eq(judge(0x1p-13, 0, 0, HSTEP_RULE_TARGET, 0x1p-13), HSTEP_CLAIM_WITHIN_TARGET);
    cr_expect_eq(judge(nextafter(0x1p-13, 1), 0, 0, HSTEP_RULE_TARGET, 0x1p-13), HSTEP_CLAIM_OUTSIDE);
    cr_expect_eq(judge(-1, -1 - 0x1p-13, 5, HSTEP_RULE_TARGET, 0x1p-13), HSTEP_CLAIM_WITHIN_TARGET,
                 "the referee has no say");
    cr_expect_eq(judge(5, 6, 5, HSTEP_RULE_TARGET, 0.5), HSTEP_CLAIM_OUTSIDE,
                 "nearer to the referee and still not within");
}

Test(compare, the_referee_has_two_sides) {
    cr_expect_eq(judge(1.25, 0.75, 1, HSTEP_RULE_REFEREE, 0), HSTEP_CLAIM_NO_FARTHER, "as far as theirs");
    cr_expect_eq(judge(1, 0.75, 1, HSTEP_RULE_REFEREE, 0), HSTEP_CLAIM_NO_FARTHER);
    cr_expect_eq(judge(nextafter(1.25, 2), 0.75, 1, HSTEP_RULE_REFEREE, 9), HSTEP_CLAIM_OUTSIDE);
    cr_expect_eq(judge(1 + 0x1p-50, 1, 1, HSTEP_RULE_REFEREE, 9), HSTEP_CLAIM_OUTSIDE, "theirs is the referee's own");
}

/* Agreement in what is no number is no agreement. */
Test(compare, nothing_is_claimed_of_nonfinite_numbers) {
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++)
        for (int rule = HSTEP_RULE_TARGET; rule <= HSTEP_RULE_REFEREE; rule++) {
            const hstep_comparison_rule r = (hstep_comparison_rule)rule;
            cr_expect_eq(judge(odd[i], 1, 1, r, 1e300), HSTEP_CLAIM_OUTSIDE);
            cr_expect_eq(judge(1, odd[i], 1, r, 1e300), HSTEP_CLAIM_OUTSIDE);
            cr_expect_eq(judge(1, 1, odd[i], r, 1e300), HSTEP_CLAIM_OUTSIDE);
            cr_expect_eq(judge(odd[i], odd[i], odd[i], r, 1e300), HSTEP_CLAIM_OUTSIDE);
        }
    const double nan = NAN, one = 1;
    const hstep_comparison c = compare(1, 1, 1, &nan, &one, &one);
    cr_expect_eq(c.our_error, INFINITY, "NaN must not pass for agreement");
    cr_expect(c.our_nonfinite == 1 && c.their_nonfinite == 0 && c.referee_nonfinite == 0);
}
