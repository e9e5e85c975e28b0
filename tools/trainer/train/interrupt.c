#include "trainer/train/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;

static void remember(int signal_number) {
    (void)signal_number;
    seen = 1;
}

void hs_interrupt_watch(void) {
    struct sigaction action = {.sa_handler = remember, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A reader of --records - that goes away is a write error with a message, not a silent death. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
}

bool hs_interrupted(void) { return seen != 0; }
