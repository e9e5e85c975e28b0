/* Ctrl-C: the first one is remembered and the step in progress goes on; a second one ends the program at once. */
#ifndef HS_TRAINER_INTERRUPT_H
#define HS_TRAINER_INTERRUPT_H

#include <stdbool.h>

void hs_interrupt_watch(void);

bool hs_interrupted(void);

#endif
