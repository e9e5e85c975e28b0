#include "trainer/train/watching/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "trainer/exit.h"

static volatile sig_atomic_t interrupted;

static void remember(int signal_number) {
    (void)signal_number;
    if (interrupted != 0)
        _exit(HS_EXIT_INTERRUPTED);
    interrupted = 1;
}

void hs_interrupt_watch(void) {
    /* Calls that wait, for a writer of a named pipe for instance, come back with EINTR. */
    struct sigaction action = {.sa_handler = remember};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A reader of --records - that goes away is a write error with a message, not a silent death. */
    signal(SIGPIPE, SIG_IGN);
}

bool hs_interrupted(void) { return interrupted != 0; }
