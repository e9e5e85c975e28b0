/*
 * What the precisions do to numbers: single numbers as fp16 and bf16 hold them, and one matrix product in all three
 * precisions, at sizes of numbers that suit a format and at such that do not.
 * cc products.c $(pkg-config --cflags --libs halfstep) -o products
 * (docs/embedding.md has the line for an installation in a folder of one's own.)
 */
#include <halfstep/halfstep.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 8, N = 8, K = 256 };

static hstep_error error;

static void require(hstep_status status) {
    if (status == HSTEP_OK)
        return;
    fprintf(stderr, "products: %s: %s\n", hstep_status_name(status), error.message);
    exit(EXIT_FAILURE);
}

/* 16 bits are kept as uint16_t; hstep_decode says which number they are. Both need no context and cannot fail. */
static void show_number(const char *what, double value) {
    const uint16_t fp16 = hstep_encode(HSTEP_FP16, value), bf16 = hstep_encode(HSTEP_BF16, value);
    printf("%-22s %-12g 0x%04x %-13.7g 0x%04x %.7g\n", what, value, (unsigned)fp16, hstep_decode(HSTEP_FP16, fp16),
           (unsigned)bf16, hstep_decode(HSTEP_BF16, bf16));
}

/* A number in [-1, 1) that is a function of its place, from the library's source without state. */
static double random_place(uint64_t stream, uint64_t index) {
    return (double)(hstep_random_at(7, stream, index) >> 11) / (1ULL << 52) - 1;
}

static double magnitude(double x) { return x < 0 ? -x : x; }

/* y = a b, a [M][K] and b [K][N] row by row. Without a context the reference computes it, in one thread. */
static void multiply(hstep_precision precision, const double *a, const double *b, double *y) {
    require(hstep_matmul(NULL, precision, HSTEP_NO_TRANSPOSE, HSTEP_NO_TRANSPOSE, M, N, K, a, b, y, &error));
}

/* One row of the table: operands of about this size, and for each precision how far the result is from that in f64, as
 * a share of the largest cell. */
static void show_product(double size) {
    static double a[M * K], b[K * N], exact[M * N], y[M * N];
    for (uint64_t i = 0; i < M * K; i++)
        a[i] = size * random_place(0, i);
    for (uint64_t i = 0; i < K * N; i++)
        b[i] = size * random_place(1, i);
    multiply(HSTEP_PRECISION_F64, a, b, exact);
    double largest = 0;
    for (int i = 0; i < M * N; i++)
        largest = magnitude(exact[i]) > largest ? magnitude(exact[i]) : largest;
    printf("%-22g %-12.3g", size, largest);

    const hstep_precision precisions[] = {HSTEP_PRECISION_FP16, HSTEP_PRECISION_BF16};
    for (int p = 0; p < 2; p++) {
        double worst = 0;
        int infinite = 0;
        multiply(precisions[p], a, b, y);
        for (int i = 0; i < M * N; i++) {
            const double distance = magnitude(y[i] - exact[i]);
            infinite += distance > 1e300; /* infinite results are no error of the call */
            worst = distance > worst ? distance : worst;
        }
        if (infinite > 0)
            printf(" %2d of %d infinite   ", infinite, M * N);
        else
            printf(" off by %.1e      ", worst / largest);
    }
    printf("\n");
}

int main(void) {
    printf("%-22s %-12s %-20s %s\n", "number", "f64", "fp16", "bf16");
    show_number("a tenth", 0.1);
    show_number("1 + 2^-10", 1 + 1.0 / 1024);     /* the smallest step above 1 in fp16; bf16 has no room for it */
    show_number("1 + 2^-11", 1 + 1.0 / 2048);     /* half a step: ties go to the even neighbour */
    show_number("largest of fp16", 65504);        /* 11 bits; bf16 rounds it */
    show_number("just beyond it", 65520);         /* infinite in fp16 */
    show_number("a small gradient", 2.98e-8);     /* below half of fp16's smallest number it becomes 0, ... */
    show_number("the same times 128", 3.8144e-6); /* ... which is what a loss scale is for */

    printf("\n%-22s %-12s %-20s %s\n", "product, operands of", "largest", "fp16", "bf16");
    show_product(1);
    show_product(100);  /* sums beyond 65504 */
    show_product(1e-3); /* below 6e-5 fp16 has fewer bits the smaller a number is */
    show_product(1e-5);
    return EXIT_SUCCESS;
}
