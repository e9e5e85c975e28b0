/* A file that is bytes in memory, for tests that read thousands of files. */
#ifndef HS_TESTS_SUPPORT_MEMORY_FILE_H
#define HS_TESTS_SUPPORT_MEMORY_FILE_H

#include "engine/files/files.h"

typedef struct hs_test_memory_file {
    const unsigned char *bytes;
    size_t size;
} hs_test_memory_file;

/* A table in which every path opens this file, for reading. */
hs_files hs_test_memory_files(hs_test_memory_file *file);

/* A table in which what is written to a new file, at most `room` bytes, lands in its image. */
typedef struct hs_test_memory_sink {
    unsigned char *image;
    size_t room, size;
} hs_test_memory_sink;

hs_files hs_test_memory_sinks(hs_test_memory_sink *sink);

#endif
