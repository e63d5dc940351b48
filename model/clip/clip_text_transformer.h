// What stands under the `text_model.` prefix: embeddings, the encoder's layers, the final norm.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "model/clip/clip_text_config.h"
#include "model/nn/activation.h"
#include "model/nn/linear.h"
#include "model/nn/module_list.h"
#include "model/nn/norm.h"

namespace sdtune::model {

// A table of vectors; weight [count, size], drawn from N(0, std^2).
class EmbeddingImpl : public torch::nn::Module {
 public:
  EmbeddingImpl(int64_t count, int64_t size, double std);
  torch::Tensor forward(const torch::Tensor& ids);  // int64 [...] -> [..., size]
  torch::Tensor weight;
};
TORCH_MODULE(Embedding);

class ClipEncoderLayerImpl : public torch::nn::Module {
 public:
  explicit ClipEncoderLayerImpl(const ClipTextConfig& config);
  torch::Tensor forward(const torch::Tensor& hidden_states);  // [B, L, D] -> same

 private:
  torch::Tensor attend(const torch::Tensor& x);

  int64_t num_heads_;
  Activation activation_;
  Linear q_proj_ = nullptr, k_proj_ = nullptr, v_proj_ = nullptr, out_proj_ = nullptr;
  LayerNorm layer_norm1_, layer_norm2_;
  Linear fc1_ = nullptr, fc2_ = nullptr;
};
TORCH_MODULE(ClipEncoderLayer);

class ClipTextTransformerImpl : public torch::nn::Module {
 public:
  explicit ClipTextTransformerImpl(const ClipTextConfig& config);

  // All num_hidden_layers + 1 states, [B, L, D] each, without the final norm.
  std::vector<torch::Tensor> forward(const torch::Tensor& ids);  // int64 [B, L]
  torch::Tensor final_norm(const torch::Tensor& hidden_states) { return final_layer_norm_(hidden_states); }
  void set_gradient_checkpointing(bool on) { recompute_ = on; }
  void set_learned_vectors(const torch::Tensor& vectors) { learned_vectors_ = vectors; }
  const torch::Tensor& learned_vectors() const { return learned_vectors_; }

 private:
  torch::Tensor embed(const torch::Tensor& ids);

  bool recompute_ = false;
  torch::Tensor learned_vectors_;  // [N, D] of the ids behind the vocabulary, or undefined
  int64_t max_positions_;
  Embedding token_embedding_ = nullptr, position_embedding_ = nullptr;
  std::unique_ptr<ModuleList<ClipEncoderLayer>> layers_;
  LayerNorm final_layer_norm_;
};
TORCH_MODULE(ClipTextTransformer);

}  // namespace sdtune::model
