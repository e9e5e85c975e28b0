#include "cpu/team.h"

#include <pthread.h>
#include <stdlib.h>

#include "precision/environment.h"

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool open;
} gate;

/* All trial threads are alive together, as a team's are. */
static void *wait_at_gate(void *argument) {
    gate *g = argument;
    (void)pthread_mutex_lock(&g->mutex);
    while (!g->open)
        (void)pthread_cond_wait(&g->opened, &g->mutex);
    (void)pthread_mutex_unlock(&g->mutex);
    return NULL;
}

static hstep_status try_threads(unsigned count, hstep_error *error) {
    pthread_t *threads = calloc(count + 1, sizeof *threads);
    if (threads == NULL)
        return hs_fail_memory(error, "threads");
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    unsigned started = 0;
    while (started < count && pthread_create(&threads[started], NULL, wait_at_gate, &g) == 0)
        started++;
    (void)pthread_mutex_lock(&g.mutex);
    g.open = true;
    (void)pthread_cond_broadcast(&g.opened);
    (void)pthread_mutex_unlock(&g.mutex);
    for (unsigned i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
    free(threads);
    HS_RETURN_IF(started < count, error, HSTEP_ERROR_MEMORY,
                 "this process cannot have %u threads, only %u; ask for fewer, or raise its limits", count + 1,
                 started + 1);
    return HSTEP_OK;
}

hstep_status hs_team_start(unsigned threads, hstep_error *error) {
    if (threads > 1)
        HS_FORWARD(try_threads(threads - 1, error));
    unsigned refused = 0;
#pragma omp parallel num_threads(threads) reduction(+ : refused)
    refused += hs_environment_refusal() != NULL;
    HS_RETURN_IF(refused != 0, error, HSTEP_ERROR_BACKEND_UNAVAILABLE,
                 "%u of %u threads flush subnormal numbers or do not round to nearest, so that no bit could be "
                 "promised; make the context before anything changes their mode",
                 refused, threads);
    return HSTEP_OK;
}
