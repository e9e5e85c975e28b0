/* One data file: its bytes, mapped or read, and where the tokens stand in them. Private to engine/data. */
#ifndef HS_ENGINE_DATA_FILE_H
#define HS_ENGINE_DATA_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <xxhash.h>

#include <halfstep/data.h>

/* Files of so many bytes and more are mapped: a mapping costs pages and one of a limited number of places. */
enum { HS_FILE_MAPPED_FROM = 1 << 16 };

typedef struct hs_file {
    hstep_data_file known; /* name from malloc */
    size_t vocabulary;     /* of the format; 0: it says none */
    unsigned char *bytes;  /* the whole file */
    size_t size, start;    /* in bytes; the first token stands at `start` */
    bool mapped;           /* bytes come from mmap, not from malloc */
    bool regular;          /* then device and inode say which file it is */
    dev_t device;
    ino_t inode;
} hs_file;

/* "data file 'NAME': " and what is wrong. Returns HSTEP_ERROR_INPUT_FILE. */
hstep_status hs_fail_file(hstep_error *error, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t hs_token_width(hstep_token_type type);

/* Maps or reads a file, which may be empty. On failure nothing is left to close. */
hstep_status hs_file_open(const char *path, hs_file *file, hstep_error *error);

/* Finds out what the bytes are, and whether none are missing. HSTEP_TOKENS_AUTO lets the file say. */
hstep_status hs_file_recognize(hs_file *file, hstep_token_type wanted, hstep_error *error);

/* The one pass over all tokens: checksum and largest token of the file, its bytes into `all`, and an error for the
   first token that is not below `limit`. */
hstep_status hs_file_scan(hs_file *file, size_t limit, XXH3_state_t *all, hstep_error *error);

/* Copies tokens out; bytes as tokens of the byte vocabulary. */
void hs_file_read(const hs_file *file, size_t first, size_t count, int32_t *tokens);

/* What is going to be read: all from front to back, or windows here and there. */
void hs_file_expect_order(const hs_file *file, bool sequential);

/* Gives the pages around some tokens of a mapping back. They come again, from the system's cache, when asked for. */
void hs_file_release(const hs_file *file, size_t first, size_t count);

void hs_file_close(hs_file *file);

#endif
