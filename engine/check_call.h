/* What every kernel relies on, checked once when a program is made. */
#ifndef HS_ENGINE_CHECK_CALL_H
#define HS_ENGINE_CHECK_CALL_H

#include "engine/backend.h"

/* Whether operation, precision and the types of the operands go together, whatever else there is in the call. */
bool hs_check_types(const hs_call *call);

/* HSTEP_ERROR_SHAPE, naming operation and operand, where operands or attributes do not fit the operation. */
hstep_status hs_check_call(const hs_call *call, hstep_error *error);

#endif
