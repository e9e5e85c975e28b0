/* The statistics of an attempt in its record. */
#ifndef HS_ENGINE_RECORDS_TRACE_H
#define HS_ENGINE_RECORDS_TRACE_H

#include <halfstep/trace.h>

#include "engine/records/fields.h"

/* Puts the object "trace" into the record. */
void hs_put_trace(hs_record *record, const hstep_trace *trace);

#endif
