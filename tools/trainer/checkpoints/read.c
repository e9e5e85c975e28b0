#include "trainer/checkpoints/read.h"

#include <stdlib.h>

#include "trainer/report.h"

hstep_status hs_section_read(const hstep_tensor_file *file, const char *name, void **data, size_t *size,
                             hstep_error *error) {
    *data = NULL;
    *size = 0;
    hstep_status status = hstep_checkpoint_section(file, name, NULL, size, error);
    /* A file is at fault that lacks what a run writes. */
    if (status == HSTEP_ERROR_ARGUMENT)
        status = error->status = HSTEP_ERROR_INPUT_FILE;
    if (status != HSTEP_OK)
        return status;
    char *bytes = calloc(1, *size + 1);
    if (bytes == NULL)
        return hs_no_memory(error);
    status = hstep_checkpoint_section(file, name, bytes, size, error);
    if (status == HSTEP_OK)
        *data = bytes;
    else
        free(bytes);
    return status;
}
