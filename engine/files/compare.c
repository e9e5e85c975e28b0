/* Tensors of files beside each other. */
#include <halfstep/compare.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/error.h"
#include "engine/files/tensor_file.h"
#include "precision/compare.h"

/* Numbers of each tensor that are in memory at once. */
enum { PIECE = HS_CHUNK / sizeof(double) };

typedef struct sources {
    const hstep_tensor_place *places[3]; /* ours, theirs, the referee or NULL */
    hstep_tensor_info info;              /* of ours */
} sources;

static bool same_shape(const hstep_tensor_info *a, const hstep_tensor_info *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static hstep_status check(sources *s, hstep_error *error) {
    HS_RETURN_IF(s->places[0] == NULL || s->places[1] == NULL, error, HSTEP_ERROR_ARGUMENT,
                 "hstep_tensor_compare: a tensor is missing");
    for (size_t i = 0; i < 3; i++) {
        hstep_tensor_info info;
        if (s->places[i] == NULL)
            continue;
        HS_FORWARD(hstep_tensor_file_tensor(s->places[i]->file, s->places[i]->index, &info, error));
        HS_RETURN_IF(info.storage > HSTEP_STORAGE_BF16, error, HSTEP_ERROR_ARGUMENT,
                     "tensor \"%.120s\" of '%.120s' holds %s and no floating-point numbers", info.name,
                     s->places[i]->file->path, hstep_storage_name(info.storage));
        if (i == 0)
            s->info = info;
        HS_RETURN_IF(!same_shape(&s->info, &info), error, HSTEP_ERROR_SHAPE,
                     "tensor \"%.120s\" of '%.120s' has another shape than \"%.120s\"", info.name,
                     s->places[i]->file->path, s->info.name);
    }
    return HSTEP_OK;
}

static hstep_status add_all(const sources *s, double *numbers, hs_comparing *comparing, hstep_error *error) {
    uint64_t left = s->info.elements;
    for (uint64_t first = 0; left > 0;) {
        const size_t count = left < PIECE ? (size_t)left : PIECE;
        for (size_t i = 0; i < 3; i++)
            if (s->places[i] != NULL)
                HS_FORWARD(hstep_tensor_file_read(s->places[i]->file, s->places[i]->index, first, count,
                                                  numbers + i * PIECE, error));
        hs_compare_add(comparing, count, numbers, numbers + PIECE, numbers + 2 * PIECE);
        first += count;
        left -= count;
    }
    return HSTEP_OK;
}

hstep_status hstep_tensor_compare(const hstep_tensor_place *ours, const hstep_tensor_place *theirs,
                                  const hstep_tensor_place *referee, hstep_comparison *comparison, hstep_error *error) {
    sources s = {.places = {ours, theirs, referee}};
    HS_RETURN_IF(comparison == NULL, error, HSTEP_ERROR_ARGUMENT, "hstep_tensor_compare: no place for the figures");
    HS_FORWARD(check(&s, error));
    double *numbers = malloc(3 * PIECE * sizeof *numbers);
    if (numbers == NULL)
        return hs_fail_memory(error, "a comparison");
    hs_comparing comparing = hs_compare_begin(s.info.rank > 0 ? s.info.dims[s.info.rank - 1] : 1, referee != NULL);
    const hstep_status status = add_all(&s, numbers, &comparing, error);
    free(numbers);
    if (status == HSTEP_OK)
        *comparison = hs_compare_end(&comparing);
    return status;
}

hstep_claim hstep_comparison_judge(const hstep_comparison *comparison, hstep_comparison_rule rule, double target) {
    return hs_compare_judge(comparison, rule, target);
}
