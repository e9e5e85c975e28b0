/* The sums that the gate of a lever compares with, against the plain loop of the policy. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "precision/format.h"
#include "precision/matmul.h"
#include "precision/random.h"

enum { MOST = 40 * 300 };

static double operand(hs_random *random, hstep_precision precision) {
    const double x = ldexp(2 * hs_random_uniform(random) - 1, (int)(hs_random_next(random) % 20) - 10);
    if (precision == HSTEP_PRECISION_F64)
        return x;
    const hstep_format format = hs_precision_format(precision);
    return hs_decode(format, hs_encode(format, x));
}

static void compare(hstep_precision precision, size_t m, size_t n, size_t k) {
    static double a[MOST], b[MOST], y[MOST], expected[MOST], sums[MOST], magnitudes[MOST];
    hs_random random = {m * 1000000 + n * 1000 + k};
    for (size_t i = 0; i < m * k; i++)
        a[i] = operand(&random, precision);
    for (size_t i = 0; i < k * n; i++)
        b[i] = operand(&random, precision);
    memset(sums, 0xff, sizeof sums);
    hs_policy_matmul(precision, m, n, k, (hs_matrix){a, k, 1}, (hs_matrix){b, n, 1}, y, n, expected);
    hs_policy_sums(precision, m, n, k, a, b, sums, magnitudes);
    cr_assert_eq(memcmp(sums, expected, m * n * sizeof *sums), 0, "%zu x %zu x %zu", m, n, k);
    for (size_t i = 0; i < m * n; i++) {
        double total = 0;
        for (size_t s = 0; s < k; s++)
            total += fabs(a[i / n * k + s] * b[s * n + i % n]);
        cr_assert_float_eq(magnitudes[i], total, 1e-6 * total);
    }
}

Test(sums, are_those_of_the_policy) {
    static const size_t shapes[][3] = {{1, 1, 1}, {3, 5, 0}, {2, 3, 127}, {5, 40, 128}, {4, 33, 129}, {7, 9, 300}};
    for (int precision = 0; precision <= HSTEP_PRECISION_BF16; precision++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            compare((hstep_precision)precision, shapes[i][0], shapes[i][1], shapes[i][2]);
}
