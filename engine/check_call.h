/* What every kernel relies on, checked once when a program is made, and what every copy and run relies on. */
#ifndef HS_ENGINE_CHECK_CALL_H
#define HS_ENGINE_CHECK_CALL_H

#include "engine/backend.h"

/* Whether operation, precision and the types of the operands go together, whatever else there is in the call. */
bool hs_check_types(const hs_call *call);

/* HSTEP_ERROR_SHAPE, naming operation and operand, where operands or attributes do not fit the operation. */
hstep_status hs_check_call(const hs_call *call, hstep_error *error);

/* HSTEP_ERROR_ARGUMENT where the buffer does not hold bytes offset..offset+bytes-1. */
hstep_status hs_check_range(const hs_buffer *buffer, size_t offset, size_t bytes, hstep_error *error);

/* HSTEP_ERROR_ARGUMENT where a program of `all` calls lacks one of first..first+count-1. */
hstep_status hs_check_calls(size_t all, size_t first, size_t count, hstep_error *error);

#endif
