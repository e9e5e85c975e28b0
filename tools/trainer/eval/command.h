/* `trainer eval`: the loss of a trained model on data. */
#ifndef HS_TRAINER_EVAL_COMMAND_H
#define HS_TRAINER_EVAL_COMMAND_H

/* Returns the exit status. */
int hs_eval(int argc, char **argv);

#endif
