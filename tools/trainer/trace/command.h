/* `trainer trace-forward`: every value of a forward pass, and every gradient, in a file. */
#ifndef HS_TRAINER_TRACE_H
#define HS_TRAINER_TRACE_H

/* Runs the command; argv[0] is its name. Returns the exit status. */
int hs_trace_forward(int argc, char **argv);

#endif
