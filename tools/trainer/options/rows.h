/*
 * Words for the rows of a table of options. Who includes this has defined HS_SETTINGS, the struct that the options are
 * stored in.
 */
#ifndef HS_TRAINER_ROWS_H
#define HS_TRAINER_ROWS_H

#include <stddef.h>

/* Sizes beyond this are typing errors; what is too large for the machine is refused when memory is asked for. */
#define HS_MANY 1048576

#define TARGET(field) .offset = offsetof(HS_SETTINGS, field)
#define COUNT(field, least, most) TARGET(field), .kind = HS_OPTION_COUNT, .minimum = least, .maximum = most
#define REAL(field, least, most) TARGET(field), .kind = HS_OPTION_REAL, .minimum = least, .maximum = most
#define CHOICE(field, list) TARGET(field), .kind = HS_OPTION_CHOICE, .choices = list
#define TEXT(field) TARGET(field), .kind = HS_OPTION_TEXT
#define TEXTS(field) TARGET(field), .kind = HS_OPTION_TEXTS
#define FLAG(field) TARGET(field), .kind = HS_OPTION_FLAG

#endif
