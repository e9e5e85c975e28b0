/* The file behind hstep_records. */
#ifndef HS_ENGINE_RECORDS_WRITER_H
#define HS_ENGINE_RECORDS_WRITER_H

#include <halfstep/records.h>

#include "engine/records/fields.h"

/* Writes the record as one line and frees it; the last thing done to every record. */
hstep_status hs_records_append(hstep_records *records, hs_record *record, hstep_error *error);

#endif
