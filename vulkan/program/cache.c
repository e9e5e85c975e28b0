#include "vulkan/program/cache.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096, MOST_BYTES = 64 << 20 };

/* Before the driver's data: drivers check what they wrote themselves, and some believe what was damaged. */
typedef struct header {
    char magic[8];
    uint64_t size, checksum;
} header;

static const char magic[8] = "HSVKPC1";

/* FNV-1a. */
static uint64_t checksum(const unsigned char *data, size_t size) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 0x100000001b3;
    return hash;
}

/* The file; makes its folders where `make` is set. */
static bool find_path(const uint8_t uuid[VK_UUID_SIZE], char path[PATH], bool make) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/')
        length = snprintf(path, PATH, "%s", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, PATH, "%s/.cache", home);
    if (length < 0 || length > PATH - 128)
        return false;
    if (make)
        (void)mkdir(path, 0700);
    length += snprintf(path + length, (size_t)(PATH - length), "/halfstep");
    if (make)
        (void)mkdir(path, 0700);
    length += snprintf(path + length, (size_t)(PATH - length), "/vulkan-");
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        length += snprintf(path + length, (size_t)(PATH - length), "%02x", uuid[i]);
    return true;
}

/* Nobody else can have written it, and reading it ends. */
static bool is_trusted(FILE *file) {
    struct stat status;
    return fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static void *read_data(FILE *file, size_t *size) {
    header head;
    if (!is_trusted(file) || fread(&head, sizeof head, 1, file) != 1 || memcmp(head.magic, magic, sizeof magic) != 0 ||
        head.size == 0 || head.size > MOST_BYTES)
        return NULL;
    void *data = malloc((size_t)head.size);
    if (data &&
        (fread(data, 1, (size_t)head.size, file) != head.size || checksum(data, (size_t)head.size) != head.checksum)) {
        free(data);
        return NULL;
    }
    *size = (size_t)head.size;
    return data;
}

void *hs_vk_cache_load(const uint8_t uuid[VK_UUID_SIZE], size_t *size) {
    char path[PATH];
    *size = 0;
    FILE *file = find_path(uuid, path, false) ? fopen(path, "rbe") : NULL;
    if (!file)
        return NULL;
    void *data = read_data(file, size);
    (void)fclose(file);
    return data;
}

static bool write_data(const char *path, const void *data, size_t size) {
    header head = {.size = size, .checksum = checksum(data, size)};
    memcpy(head.magic, magic, sizeof magic);
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (!file) {
        if (descriptor >= 0)
            (void)close(descriptor);
        return false;
    }
    const bool written = fwrite(&head, sizeof head, 1, file) == 1 && fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && written;
}

void hs_vk_cache_save(const uint8_t uuid[VK_UUID_SIZE], const void *data, size_t size) {
    char path[PATH], temporary[PATH + 32];
    if (size == 0 || size > MOST_BYTES || !find_path(uuid, path, true))
        return;
    (void)snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (!write_data(temporary, data, size) || rename(temporary, path) != 0)
        (void)unlink(temporary);
}
