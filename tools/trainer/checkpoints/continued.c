#include "trainer/checkpoints/continued.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

/* Bytes that a print is made of: some lines, with times that no other run has. */
enum { PRINTED = 4096 };

/* Whether records stand in a file that can be gone back to: not on standard output, whatever is named "-" here. */
static bool is_regular(const char *path) {
    struct stat file;
    return strcmp(path, "-") != 0 && stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

/* NULL where it is no regular file, such as a pipe that would wait for its writer, or cannot be read. */
static FILE *open_regular(const char *path) { return is_regular(path) ? fopen(path, "rb") : NULL; }

static hs_records_place place_of(const char *path, uint64_t bytes) {
    hs_records_place place = {.bytes = bytes};
    unsigned char end[PRINTED];
    const size_t size = bytes < PRINTED ? (size_t)bytes : PRINTED;
    FILE *file = bytes > 0 ? open_regular(path) : NULL;
    if (file == NULL)
        return place;
    if (fseeko(file, (off_t)(bytes - size), SEEK_SET) == 0 && fread(end, 1, size, file) == size)
        snprintf(place.print, sizeof place.print, "%016" PRIx64, (uint64_t)XXH3_64bits(end, size));
    (void)fclose(file);
    return place;
}

hs_records_place hs_records_here(const hs_run *run) {
    return place_of(run->records_path, hstep_records_size(run->records));
}

/* What stands in the records behind the checkpoint that the run goes on from. */
typedef struct tail {
    uint64_t acknowledgement; /* bytes of the checkpoint's own record, 0 where it was not written any more */
    bool ended;               /* the last record of a run is there */
} tail;

/* Records that cannot be read back, such as those of standard output, tell nothing and are taken for whole. */
static tail read_tail(const hs_run *run, uint64_t records_bytes) {
    tail found = {0, true};
    FILE *file = records_bytes > 0 ? open_regular(run->records_path) : NULL;
    if (file != NULL && fseeko(file, (off_t)records_bytes, SEEK_SET) == 0) {
        char text[4096];
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        const char *end = strchr(text, '\n'), *record = strstr(text, "\"record\":\"checkpoint\"");
        if (record != NULL && end != NULL && record < end)
            found.acknowledgement = (uint64_t)(end - text) + 1;
        found.ended = strstr(text, "\"record\":\"end\"") != NULL;
    }
    if (file != NULL)
        (void)fclose(file);
    return found;
}

/* Cutting another file's lines off would lose them. */
static hstep_status check_print(const hs_run *run, const hs_records_place *place, hstep_error *error) {
    const hs_records_place there = place_of(run->records_path, place->bytes);
    if (place->print[0] == '\0' || there.print[0] == '\0' || strcmp(place->print, there.print) == 0)
        return HSTEP_OK;
    *error = (hstep_error){.status = HSTEP_ERROR_OUTPUT_FILE};
    snprintf(error->message, sizeof error->message,
             "cannot go on in '%.160s': it does not hold the records that the run had at checkpoint '%.100s'; name "
             "those, or a new file, with --records",
             run->records_path, run->options->resumed.path);
    return error->status;
}

hstep_status hs_records_go_on(hs_run *run, const hs_records_place *place, bool *nothing_left, hstep_error *error) {
    run->continued = place->bytes > 0 && is_regular(run->records_path);
    const hstep_status status = run->continued ? check_print(run, place, error) : HSTEP_OK;
    if (status != HSTEP_OK)
        return status;
    const tail behind = read_tail(run, place->bytes);
    *nothing_left = run->finished && run->tally.steps >= run->options->steps && behind.ended;
    if (*nothing_left)
        return HSTEP_OK;
    return run->continued
               ? hstep_records_continue(run->records_path, place->bytes + behind.acknowledgement, &run->records, error)
               : hstep_records_open(run->records_path, &run->records, error);
}
