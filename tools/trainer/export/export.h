/* `trainer export`: the weights of a checkpoint alone, for other tools. */
#ifndef HS_TRAINER_EXPORT_H
#define HS_TRAINER_EXPORT_H

/* Runs the command; argv[0] is its name. Returns the exit status. */
int hs_export(int argc, char **argv);

#endif
