/* What every kernel relies on, checked once when a program is made. */
#ifndef HS_CPU_CHECK_CALL_H
#define HS_CPU_CHECK_CALL_H

#include "cpu/kernel.h"

/* HSTEP_ERROR_SHAPE, naming operation and operand, where operands or attributes do not fit the operation. */
hstep_status hs_check_call(const hs_call *call, hstep_error *error);

#endif
