// Attention on a CPU in tiles that stay in its caches, forward and backward. Dao et al., "FlashAttention: fast and
// memory-efficient exact attention with IO-awareness" (NeurIPS 2022); Milakov and Gimelshein, "Online normalizer
// calculation for softmax" (2018).
#pragma once

#include <torch/types.h>

#include "model/products/cpu_vectors.h"

namespace sdtune::model {

inline constexpr int64_t kWidestTiledHead = 160;  // numbers
// Of pairs of bfloat16 where no gradient is asked for: an autoencoder's one head, as wide as its map has channels. It
// takes 46 ms instead of 88 by products of matrices (wide_attention.h), of 64 x 64 px with 2 threads on an EPYC of
// family 26, model 2; in float32 both take as long.
inline constexpr int64_t kWidestHeadOfPairs = 512;

// Whether tiled_attention takes these: on a CPU with AVX2, float32 or bfloat16, heads of a multiple of 4 up to
// kWidestTiledHead numbers, or kWidestHeadOfPairs; keys and values of as many samples and heads as the queries.
bool can_attend_in_tiles(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

// softmax(q k^T / sqrt(d)) v for q [B, L, H, d], k and v [B, M, H, d] -> [B, L, H, d]; differentiable. Scores, softmax
// and sums are float32 whatever the dtype. With AVX-512's instructions for bfloat16 its products are of pairs, for
// which the softmax is rounded to bfloat16, unless the kind's choice says float32 (core/cpu_implementation.h); what is
// to be rounded is computed to 3e-6, another choice. An element's bits depend neither on the batch nor on the number of
// threads. `causal`: query i sees keys 0 .. i alone.
torch::Tensor tiled_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal);
torch::Tensor tiled_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal,
                              Vectors vectors);

}  // namespace sdtune::model
