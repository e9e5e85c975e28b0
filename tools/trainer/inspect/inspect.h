#ifndef HS_TRAINER_INSPECT_H
#define HS_TRAINER_INSPECT_H

/* `trainer inspect FILE`: what is in a file. Returns an exit status. */
int hs_inspect(int argc, char **argv);

#endif
