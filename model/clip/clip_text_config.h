// config.json of a CLIP text encoder, with transformers' names and defaults.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/json.h"
#include "model/nn/activation.h"

namespace sdtune::model {

struct ClipTextConfig {
  int64_t vocab_size = 49408;
  int64_t hidden_size = 512;
  int64_t intermediate_size = 2048;
  int64_t projection_dim = 512;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 8;
  int64_t max_position_embeddings = 77;  // tokens
  Activation hidden_act = Activation::kQuickGelu;
  double layer_norm_eps = 1e-5;
  double initializer_range = 0.02;
  double initializer_factor = 1.0;
  int64_t pad_token_id = 1;
  int64_t bos_token_id = 49406;
  int64_t eos_token_id = 49407;  // 2 stands for "the largest id of the row", as files from before 2023 need
  bool with_projection = false;  // CLIPTextModelWithProjection, from "architectures"

  bool operator==(const ClipTextConfig&) const = default;

  // Throws WeightError naming `where` and the key for a value or a key we do not support.
  static ClipTextConfig from_json(const Json& json, const std::string& where);
  Json to_json() const;
};

}  // namespace sdtune::model
