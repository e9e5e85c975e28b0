/* What became of the attempts of a run, and which operations overflowed first. */
#ifndef HS_TRAINER_TALLY_H
#define HS_TRAINER_TALLY_H

#include <stdbool.h>

#include <halfstep/records.h>

/* Operations told apart; whatever comes beyond is counted as "others". */
enum { HS_TALLY_OPERATIONS = 64 };

typedef struct hs_tally {
    uint64_t steps, attempts, skipped, skipped_in_row, tokens;
    hstep_operation_count overflows[HS_TALLY_OPERATIONS + 1];
    char names[HS_TALLY_OPERATIONS][sizeof((hstep_overflow *)0)->operation];
    size_t overflow_count;
} hs_tally;

void hs_tally_add(hs_tally *tally, const hstep_update *update);

/* Puts back what an earlier part of the run counted; false where there is no place for it. */
bool hs_tally_restore(hs_tally *tally, const char *operation, uint64_t count);

/* More than 5% of the attempts were skipped. */
bool hs_tally_many_skips(const hs_tally *tally);

#endif
