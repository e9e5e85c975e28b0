/**
 * @file tensor_file.h
 * Files of named tensors in the safetensors format: what is in one, and its numbers (docs/checkpoints.md).
 *
 * Intended usage:
 *  1. hstep_tensor_file_open reads and checks the header; the tensors stay in the file.
 *  2. hstep_tensor_file_tensor for each, or hstep_tensor_file_find for one by name; hstep_tensor_file_read for numbers.
 *  3. hstep_tensor_file_verify, where the file has checksums, reads everything once.
 *  4. hstep_tensor_file_write makes a file of tensors that are in memory.
 *
 * Files that halfstep writes carry a checksum of every tensor and of all the rest; files of other programs do not, and
 * are read all the same. Every error names the file, and the tensor or the byte where it went wrong.
 */
#ifndef HALFSTEP_TENSOR_FILE_H
#define HALFSTEP_TENSOR_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <halfstep/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How numbers stand in a file. */
typedef enum hstep_storage {
    HSTEP_STORAGE_F64 = 0,
    HSTEP_STORAGE_F32 = 1,
    HSTEP_STORAGE_F16 = 2,
    HSTEP_STORAGE_BF16 = 3,
    HSTEP_STORAGE_I64 = 4,
    HSTEP_STORAGE_I32 = 5,
    HSTEP_STORAGE_I16 = 6,
    HSTEP_STORAGE_I8 = 7,
    HSTEP_STORAGE_U64 = 8,
    HSTEP_STORAGE_U32 = 9,
    HSTEP_STORAGE_U16 = 10,
    HSTEP_STORAGE_U8 = 11,
    HSTEP_STORAGE_BOOL = 12
} hstep_storage;

enum { HSTEP_TENSOR_MAX_RANK = 8 };

/** An open file. */
typedef struct hstep_tensor_file hstep_tensor_file;

/** A tensor in a file. Texts live as long as the file is open. */
typedef struct hstep_tensor_info {
    const char *name;                   /**< As the file has it. */
    hstep_storage storage;              /**< How its numbers stand there. */
    size_t rank;                        /**< 0 for a single number. */
    size_t dims[HSTEP_TENSOR_MAX_RANK]; /**< The first `rank` of them. */
    uint64_t elements;                  /**< Product of the dimensions. */
    uint64_t offset;                    /**< Of its first byte, from the beginning of the file. */
    uint64_t bytes;                     /**< The elements, row-major, little-endian. */
    const char *checksum; /**< XXH3 (64 bits) of the bytes as 16 hexadecimal digits; NULL where the file has none. */
} hstep_tensor_info;

/** "F64" and the like: the format's own name; "?" for none of the above. */
HSTEP_API const char *hstep_storage_name(hstep_storage storage);

/** Reads "f64", "f32", "f16", "fp16", "bf16" or one of the format's own names; then HSTEP_OK. */
HSTEP_API hstep_status hstep_storage_parse(const char *text, hstep_storage *storage);

/**
 * Opens a file and checks its header: sizes, types, shapes, and that the tensors fill the rest of the file without
 * holes and overlaps; and the header's checksum, where there is one.
 * @return HSTEP_ERROR_INPUT_FILE naming the file, the place and the reason.
 */
HSTEP_API hstep_status hstep_tensor_file_open(const char *path, hstep_tensor_file **file, hstep_error *error);

/** NULL is ignored. */
HSTEP_API void hstep_tensor_file_close(hstep_tensor_file *file);

/** Bytes of the whole file. */
HSTEP_API uint64_t hstep_tensor_file_size(const hstep_tensor_file *file);

/** Nonzero when the file carries checksums; the header's was right when it was opened. */
HSTEP_API int hstep_tensor_file_has_checksums(const hstep_tensor_file *file);

/** What the metadata say under `key`, such as "schema"; NULL when they say nothing. Lives as long as the file. */
HSTEP_API const char *hstep_tensor_file_text(const hstep_tensor_file *file, const char *key);

/** Number of tensors, in the order of their bytes. */
HSTEP_API size_t hstep_tensor_file_count(const hstep_tensor_file *file);

/** HSTEP_ERROR_ARGUMENT when there is no tensor `index`. */
HSTEP_API hstep_status hstep_tensor_file_tensor(const hstep_tensor_file *file, size_t index, hstep_tensor_info *info,
                                                hstep_error *error);

/** Index of the tensor of that name, or SIZE_MAX. */
HSTEP_API size_t hstep_tensor_file_find(const hstep_tensor_file *file, const char *name);

/**
 * Elements first..first+count-1 of a tensor, row-major. F64, F32, F16 and BF16 are widened exactly; other types are
 * HSTEP_ERROR_ARGUMENT. No checksum is looked at: call hstep_tensor_file_verify before. Where the file itself fails
 * (HSTEP_ERROR_INPUT_FILE), some of `values` may have been written.
 */
HSTEP_API hstep_status hstep_tensor_file_read(const hstep_tensor_file *file, size_t index, uint64_t first, size_t count,
                                              double *values, hstep_error *error);

/**
 * Reads all tensors and compares their checksums.
 * @return HSTEP_ERROR_INPUT_FILE naming the first damaged tensor and where it stands, or saying that the file has no
 *         checksums.
 */
HSTEP_API hstep_status hstep_tensor_file_verify(const hstep_tensor_file *file, hstep_error *error);

/** The same for one tensor, so that every damaged one can be named; HSTEP_ERROR_ARGUMENT when there is no such one. */
HSTEP_API hstep_status hstep_tensor_file_verify_tensor(const hstep_tensor_file *file, size_t index, hstep_error *error);

/** A tensor in memory, for a file. */
typedef struct hstep_tensor_data {
    const char *name;                   /**< UTF-8, no other's in the file. */
    size_t rank;                        /**< 0 for a single number. */
    size_t dims[HSTEP_TENSOR_MAX_RANK]; /**< The first `rank` of them. */
    const double *values;               /**< Row-major. */
} hstep_tensor_data;

/** A text of a file's metadata, as hstep_tensor_file_text gives it back. */
typedef struct hstep_tensor_text {
    const char *key;   /**< UTF-8. */
    const char *value; /**< UTF-8. */
} hstep_tensor_text;

/**
 * Writes tensors in F64, with checksums, under a temporary name, and gives the file its own when all is on the disk; a
 * file of that name is replaced.
 * @return HSTEP_ERROR_ARGUMENT for a name that is no UTF-8 or stands there twice; HSTEP_ERROR_SHAPE;
 *         HSTEP_ERROR_OUTPUT_FILE, and what was there is still there; HSTEP_ERROR_MEMORY.
 */
HSTEP_API hstep_status hstep_tensor_file_write(const char *path, const hstep_tensor_data *tensors, size_t count,
                                               const hstep_tensor_text *texts, size_t text_count, hstep_error *error);

#ifdef __cplusplus
}
#endif
#endif
