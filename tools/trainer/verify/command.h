/* `trainer verify`: levers, or a precision, beside the reference in whole runs (policy, section 7). */
#ifndef HS_TRAINER_VERIFY_COMMAND_H
#define HS_TRAINER_VERIFY_COMMAND_H

/* argv[0] is "verify". Returns the program's exit status. */
int hs_verify(int argc, char **argv);

#endif
