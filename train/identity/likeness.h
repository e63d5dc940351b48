// How well likenesses separate one person from another. A likeness is the cosine of two embeddings, or of an embedding
// and a mean of several.
#pragma once

#include <torch/types.h>

namespace sdtune::train {

// The mean of some embeddings [n, D], brought to length 1: what several photos of one person say together.
torch::Tensor mean_embedding(const torch::Tensor& embeddings);

// The probability that a likeness of `same` exceeds one of `different`, ties counting half (Mann and Whitney). Both are
// vectors of any length > 0.
double area_under_curve(const torch::Tensor& same, const torch::Tensor& different);

// The smallest likeness such that at most `share` of `different` are at or above it.
double threshold_at(const torch::Tensor& different, double share);

// Which of `likenesses` are at or above the threshold. Compared in float64: rounded to float32, a threshold just above
// one of them is that one.
torch::Tensor are_accepted(const torch::Tensor& likenesses, double threshold);

// The share of `likenesses` at or above the threshold.
double share_accepted(const torch::Tensor& likenesses, double threshold);

}  // namespace sdtune::train
