// The layers of LyCORIS that are no product of two matrices: read as the change of the weight that they stand for.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sdtune::model {

// A layer's tensors by the last part of their names: "hada_w1_a", "lokr_w2", "lora_mid".
using LycorisFactors = std::map<std::string, torch::Tensor>;

// The names that LycorisFactors may have, those of the two matrices of a plain LoRA ("lora_down", "lora_up") not among
// them.
const std::vector<std::string>& lycoris_names();

// What is added to the layer's weight of `shape` [out, in] or [out, in, k, k], alpha / rank in it; float32. For
//   LoHa: (w1_a w1_b) * (w2_a w2_b), element by element (Hyeon-Woo et al., "FedPara", ICLR 2022);
//   LoKr: the Kronecker product of w1 and w2, each whole or as a product (Yeh et al., "LyCORIS", ICLR 2024);
//   LoCon in Tucker form: up mid down, three convolutions of which the middle one has the kernel;
// the first two in Tucker form too (hada_t1, hada_t2, lokr_t2). `alpha` unset: the rank. Throws WeightError naming
// `where` when a tensor is missing, or the shapes do not fit or would make a product that fills the memory.
torch::Tensor lycoris_delta(const LycorisFactors& factors, std::optional<double> alpha,
                            const std::vector<std::int64_t>& shape, const std::string& where);

}  // namespace sdtune::model
