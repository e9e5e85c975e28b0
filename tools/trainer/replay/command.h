/* `trainer replay`: an attempt that overflowed and was kept, once more. */
#ifndef HS_TRAINER_REPLAY_H
#define HS_TRAINER_REPLAY_H

/* Runs the command; argv[0] is its name. Returns the exit status. */
int hs_replay(int argc, char **argv);

#endif
