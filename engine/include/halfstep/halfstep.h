/**
 * @file halfstep.h
 * halfstep: mixed-precision training with updates as transactions. This header includes all the others, from the
 * simple to the advanced: number.h (conversion, products), model.h and trainer.h (a decoder and its updates),
 * checkpoint.h and tensor_file.h (what is kept in files), compare.h (tensors beside those of another framework), data.h
 * (text as tokens), decoding.h (text that a model writes), graph.h (models of one's own).
 *
 * The library never prints, exits or aborts. Functions return hstep_status and describe failures in an hstep_error
 * that the caller owns.
 */
#ifndef HALFSTEP_HALFSTEP_H
#define HALFSTEP_HALFSTEP_H

#include <halfstep/checkpoint.h>
#include <halfstep/compare.h>
#include <halfstep/context.h>
#include <halfstep/data.h>
#include <halfstep/decoding.h>
#include <halfstep/graph.h>
#include <halfstep/levers.h>
#include <halfstep/model.h>
#include <halfstep/number.h>
#include <halfstep/optim.h>
#include <halfstep/records.h>
#include <halfstep/tensor_file.h>
#include <halfstep/trainer.h>
#include <halfstep/types.h>

#define HSTEP_VERSION_MAJOR 0
#define HSTEP_VERSION_MINOR 1
#define HSTEP_VERSION_PATCH 0
#define HSTEP_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that runs, as opposed to the header's HSTEP_VERSION. */
HSTEP_API const char *hstep_version(void);

#ifdef __cplusplus
}
#endif
#endif
