/* How the threads of a run wait for each other. */
#ifndef HS_TRAINER_THREADS_H
#define HS_TRAINER_THREADS_H

/*
 * GNU OpenMP lets a thread spin for milliseconds before it sleeps. Where other programs want the same processors, a
 * step with its hundreds of short waits then runs many times slower; a shorter spin costs nothing on an idle machine.
 * The library reads this setting once, when it is loaded, so the program starts itself again with it, unless the
 * environment says already how to wait. Returns when nothing is to be done, or when it did not work.
 */
void hs_threads_wait_briefly(char **argv);

#endif
