// CLIPTextModel and CLIPTextModelWithProjection: the text side of Radford et al., "Learning transferable visual models
// from natural language supervision" (ICML 2021). Parameter names are transformers', with the `text_model.` prefix.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <vector>

#include "model/clip/clip_text_config.h"
#include "model/clip/clip_text_transformer.h"
#include "model/nn/linear.h"

namespace sdtune::model {

struct TextOutput {
  torch::Tensor last_hidden_state;  // [B, L, D], after the final norm
  torch::Tensor pooled;             // [B, D] at the end-of-text token; [B, P] projected, when there is a projection
  std::vector<torch::Tensor>
      hidden_states;  // num_hidden_layers + 1 of [B, L, D]: embeddings, then each layer; no final norm
};

class CLIPTextModelImpl : public torch::nn::Module {
 public:
  explicit CLIPTextModelImpl(const ClipTextConfig& config);

  TextOutput forward(const torch::Tensor& ids);  // int64 [B, L], L <= max_position_embeddings

  // The norm that last_hidden_state went through, for the state of an earlier layer. [B, L, D] -> same
  torch::Tensor final_norm(const torch::Tensor& hidden_states) { return text_model_->final_norm(hidden_states); }

  const ClipTextConfig& config() const { return config_; }
  // Vectors [N, D] of the ids vocab_size, vocab_size + 1, ... that a textual inversion learnt; undefined: none. They
  // are no parameters: never trained, never saved.
  void set_learned_vectors(const torch::Tensor& vectors) { text_model_->set_learned_vectors(vectors); }
  const torch::Tensor& learned_vectors() const { return text_model_->learned_vectors(); }
  // Throws activations of the layers away and computes them again in backward: less memory, one more forward.
  void set_gradient_checkpointing(bool on);

 private:
  ClipTextConfig config_;
  ClipTextTransformer text_model_;
  Linear text_projection_ = nullptr;
};
TORCH_MODULE(CLIPTextModel);

}  // namespace sdtune::model
