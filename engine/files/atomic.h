/*
 * A file that is there whole or not at all: written under a temporary name in the same folder, synced, renamed, and the
 * folder synced. Whatever happens before the renaming, a file that had the name keeps it and every byte.
 *
 * A temporary file is named PATH.PID-CLOCK.tmp and locked while it is written, so that leftovers of killed processes
 * can be told from files at work, on whatever machine their writer runs.
 */
#ifndef HS_ENGINE_FILES_ATOMIC_H
#define HS_ENGINE_FILES_ATOMIC_H

#include <halfstep/types.h>

#include "engine/files/files.h"

typedef struct hs_atomic_file {
    const hs_files *files;
    int descriptor; /* -1 when closed */
    char *path, *temporary;
} hs_atomic_file;

/* A failure leaves nothing behind. */
hstep_status hs_atomic_begin(hs_atomic_file *file, const hs_files *files, const char *path, hstep_error *error);

hstep_status hs_atomic_write(hs_atomic_file *file, const void *data, size_t size, uint64_t offset, hstep_error *error);

/* Gives the file its name. In any case `file` is done with afterwards. */
hstep_status hs_atomic_commit(hs_atomic_file *file, hstep_error *error);

/* Removes what was written. Does nothing after a commit, or for a zeroed struct. */
void hs_atomic_abandon(hs_atomic_file *file);

/* How much of a temporary name is the name that the file was to get; 0 for a name that is none. */
size_t hs_temporary_base(const char *name);

/*
 * Removes temporary files in a folder that no process is writing, whose final names `ours` knows (they are
 * not terminated). *removed says how many. One that cannot be locked or removed is left: it takes room and does no
 * harm.
 */
hstep_status hs_remove_leftovers(const hs_files *files, const char *folder,
                                 bool (*ours)(const char *name, size_t length), size_t *removed, hstep_error *error);

#endif
