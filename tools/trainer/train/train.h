/* `trainer train`. */
#ifndef HS_TRAINER_TRAIN_H
#define HS_TRAINER_TRAIN_H

/* argv[0] is "train". Returns the program's exit status. */
int hs_train(int argc, char **argv);

#endif
