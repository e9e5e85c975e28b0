/* `trainer sample`: text that a trained model writes. */
#ifndef HS_TRAINER_SAMPLE_COMMAND_H
#define HS_TRAINER_SAMPLE_COMMAND_H

/* Returns the exit status. */
int hs_sample(int argc, char **argv);

#endif
