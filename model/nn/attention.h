// Multi-head attention as diffusers' Attention: to_q, to_k, to_v, to_out.0. Vaswani et al., "Attention is all you need"
// (NeurIPS 2017).
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <unordered_map>

#include "model/nn/linear.h"

namespace sdtune::model {

// [B, M, heads, head_dim], both.
struct KeysAndValues {
  torch::Tensor keys;
  torch::Tensor values;
};

// What every attention makes of a context that stays the same over many calls: an image's prompt, over its steps.
// Whoever runs the loop owns one and gives it to each call with the same context and weights; without it, all is made
// anew. Not for training, where gradients go through keys and values.
class ContextCache {
 public:
  // The entry of one layer, empty at first.
  KeysAndValues& of(const void* layer) { return entries_[layer]; }

 private:
  std::unordered_map<const void*, KeysAndValues> entries_;
};

struct AttentionOptions {
  int64_t query_dim = 0;
  int64_t context_dim = 0;  // width of keys' and values' source; = query_dim for self-attention
  int64_t heads = 1;
  int64_t head_dim = 0;
  bool qkv_bias = false;
  bool upcast = false;  // scores and softmax in float32 where the dtype is float16
};

class AttentionImpl : public torch::nn::Module {
 public:
  explicit AttentionImpl(const AttentionOptions& options);

  // x [B, L, query_dim], context [B, M, context_dim] (undefined: x itself) -> [B, L, query_dim]. `cache`: see there.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& context = torch::Tensor(),
                        ContextCache* cache = nullptr);

 private:
  KeysAndValues keys_and_values(const torch::Tensor& source);  // [B, M, context_dim]

  AttentionOptions options_;
  Linear to_q_, to_k_, to_v_;
  Linear to_out_ = nullptr;
};
TORCH_MODULE(Attention);

// The bias of the layer that makes keys adds one number, q b / sqrt(d), to all scores of a query, which softmax takes
// out again. So callers leave it out (Linear::forward_without_bias): the result is the same, and its gradient is the
// zero of mathematics instead of what rounding leaves of a sum that cancels, which AdamW would scale up.
//
// softmax(q k^T / sqrt(d)) v for q, k, v [B, L, H, d]; returns [B, L, H, d]. `upcast` computes in float32.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, bool causal, bool upcast);

}  // namespace sdtune::model
