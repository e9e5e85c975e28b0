/* Reading what a checkpoint holds beside its tensors. */
#ifndef HS_TRAINER_READ_H
#define HS_TRAINER_READ_H

#include <halfstep/checkpoint.h>

/* A section of a file: its bytes, from malloc, and a zero behind them. *data is NULL where it fails. */
hstep_status hs_section_read(const hstep_tensor_file *file, const char *name, void **data, size_t *size,
                             hstep_error *error);

#endif
