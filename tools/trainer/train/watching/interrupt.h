/* SIGINT (Ctrl-C) and SIGTERM: the first one is remembered and the step in progress goes on; a second one, of either
   kind, ends the program at once with HS_EXIT_INTERRUPTED. */
#ifndef HS_TRAINER_INTERRUPT_H
#define HS_TRAINER_INTERRUPT_H

#include <stdbool.h>

void hs_interrupt_watch(void);

bool hs_interrupted(void);

#endif
