#include "model/clip/clip_text_transformer.h"

#include "model/core/check.h"
#include "model/nn/attention.h"
#include "model/nn/initial_values.h"
#include "model/nn/recompute.h"

namespace sdtune::model {

EmbeddingImpl::EmbeddingImpl(int64_t count, int64_t size, double std) {
  weight = register_parameter("weight", normal_parameter({count, size}, std));
}

torch::Tensor EmbeddingImpl::forward(const torch::Tensor& ids) {
  return torch::embedding(weight, ids);
}

ClipEncoderLayerImpl::ClipEncoderLayerImpl(const ClipTextConfig& config)
    : num_heads_(config.num_attention_heads),
      activation_(config.hidden_act),
      layer_norm1_(config.hidden_size, config.layer_norm_eps),
      layer_norm2_(config.hidden_size, config.layer_norm_eps) {
  const int64_t size = config.hidden_size;
  const auto self_attn = register_module("self_attn", std::make_shared<torch::nn::Module>("self_attn"));
  k_proj_ = self_attn->register_module("k_proj", Linear(size, size));
  v_proj_ = self_attn->register_module("v_proj", Linear(size, size));
  q_proj_ = self_attn->register_module("q_proj", Linear(size, size));
  out_proj_ = self_attn->register_module("out_proj", Linear(size, size));
  register_module("layer_norm1", layer_norm1_);
  const auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>("mlp"));
  fc1_ = mlp->register_module("fc1", Linear(size, config.intermediate_size));
  fc2_ = mlp->register_module("fc2", Linear(config.intermediate_size, size));
  register_module("layer_norm2", layer_norm2_);
}

torch::Tensor ClipEncoderLayerImpl::attend(const torch::Tensor& x) {
  const auto heads = [this](const torch::Tensor& y) { return y.unflatten(2, {num_heads_, -1}); };
  const torch::Tensor attended =
      model::attend(heads(q_proj_(x)), heads(k_proj_->forward_without_bias(x)), heads(v_proj_(x)),
                    /*causal=*/true, /*upcast=*/false);
  return out_proj_(attended.flatten(2));
}

torch::Tensor ClipEncoderLayerImpl::forward(const torch::Tensor& hidden_states) {
  const torch::Tensor x = attend(layer_norm1_(hidden_states)) + hidden_states;
  return fc2_(activate(fc1_(layer_norm2_(x)), activation_)) + x;
}

ClipTextTransformerImpl::ClipTextTransformerImpl(const ClipTextConfig& config)
    : max_positions_(config.max_position_embeddings), final_layer_norm_(config.hidden_size, config.layer_norm_eps) {
  const double std = config.initializer_range * config.initializer_factor;
  const auto embeddings = register_module("embeddings", std::make_shared<torch::nn::Module>("embeddings"));
  token_embedding_ =
      embeddings->register_module("token_embedding", Embedding(config.vocab_size, config.hidden_size, std));
  position_embedding_ = embeddings->register_module("position_embedding",
                                                    Embedding(config.max_position_embeddings, config.hidden_size, std));
  const auto encoder = register_module("encoder", std::make_shared<torch::nn::Module>("encoder"));
  layers_ = std::make_unique<ModuleList<ClipEncoderLayer>>(*encoder, "layers");
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) layers_->push_back(ClipEncoderLayer(config));
  register_module("final_layer_norm", final_layer_norm_);
}

torch::Tensor ClipTextTransformerImpl::embed(const torch::Tensor& ids) {
  if (!learned_vectors_.defined()) return token_embedding_(ids);
  const int64_t known = token_embedding_->weight.size(0);
  const torch::Tensor of_vocabulary = token_embedding_(ids.clamp_max(known - 1));
  const torch::Tensor learned =
      torch::embedding(learned_vectors_.to(of_vocabulary.options().requires_grad(false)), (ids - known).clamp_min(0));
  return torch::where(ids.ge(known).unsqueeze(-1), learned, of_vocabulary);
}

std::vector<torch::Tensor> ClipTextTransformerImpl::forward(const torch::Tensor& ids) {
  check_shape(ids, {-1, -1}, "input_ids");
  TORCH_CHECK(ids.size(1) <= max_positions_, "input_ids: ", ids.size(1), " tokens; the model has positions for ",
              max_positions_);
  const torch::Tensor positions = torch::arange(ids.size(1), ids.options());
  std::vector<torch::Tensor> states = {embed(ids) + position_embedding_(positions)};
  for (ClipEncoderLayer& layer : *layers_) {
    if (recompute_) {
      states.push_back(recompute([layer](const std::vector<torch::Tensor>& inputs) mutable { return layer(inputs[0]); },
                                 {states.back()}));
    } else {
      states.push_back(layer(states.back()));
    }
  }
  return states;
}

}  // namespace sdtune::model
