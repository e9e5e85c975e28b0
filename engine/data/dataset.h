/* What a dataset holds. Private to engine/data. */
#ifndef HS_ENGINE_DATA_DATASET_H
#define HS_ENGINE_DATA_DATASET_H

#include <halfstep/data.h>

struct hstep_dataset {
    unsigned char *bytes;
    size_t size;
    size_t training; /* bytes 0..training-1 are trained on, the others held out */
    uint64_t checksum;
};

/* Takes `bytes` (from malloc) over, also on failure. */
hstep_status hs_dataset_adopt(unsigned char *bytes, size_t size, hstep_dataset **dataset, hstep_error *error);

#endif
