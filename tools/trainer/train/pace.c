#include "trainer/train/pace.h"

#include <stddef.h>

/* A larger update takes about a second on one thread, beside which waiting counts for little, and which is long to find
 * that out in. */
#define LARGE 0x1p35

/* All threads must be faster by this factor. */
#define GAIN 1.1

enum { SHORTEST_PAUSE = 50, LONGEST_PAUSE = 1600, SLOW_IN_A_ROW = 3 };

static bool gates_anything(const hstep_context *context) {
    const hstep_lever *levers;
    const size_t count = hstep_context_levers(context, &levers);
    for (size_t i = 0; i < count; ++i)
        if (!levers[i].exact && levers[i].state == HSTEP_LEVER_ACTIVE)
            return true;
    return false;
}

static void use_one_thread(hs_pace *pace, bool one) {
    pace->one_thread = one;
    hstep_context_use_one_thread(pace->context, one);
}

void hs_pace_start(hs_pace *pace, hstep_context *context, double operations) {
    *pace = (hs_pace){.context = NULL};
    if (hstep_context_threads(context) > 1 && operations < LARGE && !gates_anything(context))
        pace->context = context;
}

static void measure(hs_pace *pace) {
    pace->measuring = true;
    pace->measured = 0;
    use_one_thread(pace, true);
}

static double median(const double *seconds) {
    const double least = seconds[0] < seconds[1] ? seconds[0] : seconds[1];
    const double most = seconds[0] < seconds[1] ? seconds[1] : seconds[0];
    return seconds[2] < least ? least : seconds[2] > most ? most : seconds[2];
}

/* Each time that one thread is found to be faster again, it is left alone for longer. */
static void decide(hs_pace *pace, bool one, double one_seconds) {
    const uint64_t longer = pace->pause == 0 ? SHORTEST_PAUSE : 2 * pace->pause;
    pace->measuring = false;
    pace->one_seconds = one_seconds;
    pace->pause = !one ? 0 : longer < LONGEST_PAUSE ? longer : LONGEST_PAUSE;
    pace->left = pace->pause;
    pace->slow = 0;
    use_one_thread(pace, one);
}

/* That all threads are ruinous is seen by one update of theirs. */
static void note_measured(hs_pace *pace, double seconds) {
    const unsigned pair = pace->measured / 2;
    const bool was_one = pace->measured++ % 2 == 0;
    (was_one ? pace->one : pace->all)[pair] = seconds;
    if (was_one)
        use_one_thread(pace, false);
    else if (seconds > 2 * pace->one[pair])
        decide(pace, true, pace->one[pair]);
    else if (pair + 1 == HS_PACE_PAIRS)
        decide(pace, median(pace->all) * GAIN > median(pace->one), median(pace->one));
    else
        use_one_thread(pace, true);
}

void hs_pace_note(hs_pace *pace, double seconds) {
    if (pace->context == NULL)
        return;
    if (!pace->warm) {
        pace->warm = true;
        measure(pace);
    } else if (pace->measuring) {
        note_measured(pace, seconds);
    } else if (pace->one_thread) {
        if (--pace->left == 0)
            measure(pace);
    } else {
        pace->slow = seconds > pace->one_seconds ? pace->slow + 1 : 0;
        if (pace->slow == SLOW_IN_A_ROW)
            measure(pace);
    }
}
