/* The types that numbers have in files. */
#include <string.h>

#include "engine/error.h"
#include "engine/files/tensor_file.h"

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [HSTEP_STORAGE_F64] = {"F64", 8},   [HSTEP_STORAGE_F32] = {"F32", 4}, [HSTEP_STORAGE_F16] = {"F16", 2},
    [HSTEP_STORAGE_BF16] = {"BF16", 2}, [HSTEP_STORAGE_I64] = {"I64", 8}, [HSTEP_STORAGE_I32] = {"I32", 4},
    [HSTEP_STORAGE_I16] = {"I16", 2},   [HSTEP_STORAGE_I8] = {"I8", 1},   [HSTEP_STORAGE_U64] = {"U64", 8},
    [HSTEP_STORAGE_U32] = {"U32", 4},   [HSTEP_STORAGE_U16] = {"U16", 2}, [HSTEP_STORAGE_U8] = {"U8", 1},
    [HSTEP_STORAGE_BOOL] = {"BOOL", 1},
};

enum { TYPES = sizeof types / sizeof types[0] };

size_t hs_storage_size(hstep_storage storage) { return types[storage].size; }

const char *hstep_storage_name(hstep_storage storage) { return (unsigned)storage < TYPES ? types[storage].name : "?"; }

hstep_status hstep_storage_parse(const char *text, hstep_storage *storage) {
    static const struct {
        const char *name;
        hstep_storage storage;
    } short_names[] = {{"f64", HSTEP_STORAGE_F64},
                       {"f32", HSTEP_STORAGE_F32},
                       {"f16", HSTEP_STORAGE_F16},
                       {"fp16", HSTEP_STORAGE_F16},
                       {"bf16", HSTEP_STORAGE_BF16}};
    if (text == NULL || storage == NULL)
        return HSTEP_ERROR_ARGUMENT;
    for (size_t i = 0; i < sizeof short_names / sizeof short_names[0]; i++)
        if (strcmp(text, short_names[i].name) == 0) {
            *storage = short_names[i].storage;
            return HSTEP_OK;
        }
    for (size_t i = 0; i < TYPES; i++)
        if (strcmp(text, types[i].name) == 0) {
            *storage = (hstep_storage)i;
            return HSTEP_OK;
        }
    return HSTEP_ERROR_ARGUMENT;
}
