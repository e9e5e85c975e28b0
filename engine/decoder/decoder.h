/* The decoder as a graph for decoding, which a model keeps no parameters of its own for. */
#ifndef HS_ENGINE_DECODER_DECODER_H
#define HS_ENGINE_DECODER_DECODER_H

#include <halfstep/model.h>

#include "engine/graph/graph.h"

/*
 * Tokens [ROWS] to the logits [SEQUENCES, vocabulary] of each sequence's last position, with a cache of keys and
 * values. Parameters are those of hstep_model_create_decoder, in the same order; `config` must have passed it.
 */
hstep_status hs_decoder_decoding_graph(const hstep_decoder_config *config, size_t sequences, size_t capacity,
                                       hstep_graph **graph, hstep_error *error);

#endif
