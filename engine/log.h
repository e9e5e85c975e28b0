/* Messages that no status can carry. Private to the engine. */
#ifndef HS_ENGINE_LOG_H
#define HS_ENGINE_LOG_H

#include <halfstep/context.h>

/* Where they go; without a function nowhere. */
typedef struct hs_messages {
    hstep_log *function;
    void *user;
} hs_messages;

void hs_say(const hs_messages *log, hstep_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
