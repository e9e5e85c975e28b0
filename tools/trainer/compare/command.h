/* `trainer compare`: what an engine computed beside what another framework did (policy, section 8). */
#ifndef HS_TRAINER_COMPARE_COMMAND_H
#define HS_TRAINER_COMPARE_COMMAND_H

/* argv[0] is "compare". Returns the program's exit status. */
int hs_compare(int argc, char **argv);

#endif
