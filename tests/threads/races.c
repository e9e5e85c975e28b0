/* A race between two threads, or ("openmp") within an OpenMP region, or ("none") neither: what ThreadSanitizer must
 * see. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* volatile: or the compiler may read it ahead where a thread has nothing to count, which would be a race of its own. */
static volatile int shared;

static void *count(void *unused) {
    for (int i = 0; i < 1000; i++)
        shared++;
    return unused;
}

static void in_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        (void)pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
}

static void in_a_region(void) {
#pragma omp parallel num_threads(2)
    (void)count(NULL);
}

/* Threads that write one after the other, with a barrier between them: no race for who knows OpenMP's barriers. */
static void one_after_the_other(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        (void)count(NULL);
#pragma omp single
        (void)count(NULL);
#pragma omp for schedule(static, 1)
        for (int i = 0; i < 2; i++)
            if (i == 0)
                (void)count(NULL);
#pragma omp barrier
#pragma omp for schedule(static, 1)
        for (int i = 0; i < 2; i++)
            if (i == 1)
                (void)count(NULL);
    }
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "threads") == 0)
        in_threads();
    else if (strcmp(argv[1], "openmp") == 0)
        in_a_region();
    else
        one_after_the_other();
    return printf("%d\n", shared) < 0;
}
