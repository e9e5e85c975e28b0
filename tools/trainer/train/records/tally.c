#include "trainer/train/records/tally.h"

#include <string.h>

static void count_overflow(hs_tally *tally, const char *operation) {
    for (size_t i = 0; i < tally->overflow_count; ++i) {
        if (i == HS_TALLY_OPERATIONS || strcmp(tally->overflows[i].operation, operation) == 0) {
            ++tally->overflows[i].count;
            return;
        }
    }
    const size_t place = tally->overflow_count++;
    tally->overflows[place] = (hstep_operation_count){"others", 1};
    if (place == HS_TALLY_OPERATIONS)
        return;
    memcpy(tally->names[place], operation, strlen(operation) + 1);
    tally->overflows[place].operation = tally->names[place];
}

bool hs_tally_restore(hs_tally *tally, const char *operation, uint64_t count) {
    const size_t place = tally->overflow_count;
    if (place > HS_TALLY_OPERATIONS || strlen(operation) >= sizeof tally->names[0])
        return false;
    count_overflow(tally, operation);
    tally->overflows[place].count = count;
    return tally->overflow_count == place + 1;
}

void hs_tally_add(hs_tally *tally, const hstep_update *update) {
    ++tally->attempts;
    if (update->outcome == HSTEP_APPLIED) {
        ++tally->steps;
        tally->tokens += update->tokens;
        tally->skipped_in_row = 0;
        return;
    }
    ++tally->skipped;
    ++tally->skipped_in_row;
    count_overflow(tally, update->overflow.operation);
}

bool hs_tally_many_skips(const hs_tally *tally) { return tally->skipped * 20 > tally->attempts; }
