// Captions to token ids, and to the states that a text encoder gives them before training, once for each distinct one.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/pipeline/prompt_encoding.h"

namespace sdtune::train {

class TextCache {
 public:
  using Tokenize = std::function<model::PromptIds(const std::vector<std::string>&)>;
  using Encode = std::function<model::PromptEmbeds(const model::PromptIds&)>;

  // Tokenizes every distinct caption. With `encode` (called without gradients, few captions at a time) it also keeps
  // the states. Both come from model/pipeline/prompt_encoding.h, bound to the bundle.
  TextCache(const std::vector<std::string>& captions, const Tokenize& tokenize, const Encode& encode = {});

  // The ids of some captions, [B, 77], in their order. Throws DataError for a caption that was not given at first.
  model::PromptIds ids(const std::vector<std::string>& captions) const;
  // Their states, [B, 77, D] and pooled [B, P], as `encode` gave them. Throws std::logic_error without `encode`.
  model::PromptEmbeds states(const std::vector<std::string>& captions) const;

  bool has_states() const { return states_.context.defined(); }
  std::int64_t size() const { return static_cast<std::int64_t>(row_.size()); }  // distinct captions

 private:
  torch::Tensor rows(const std::vector<std::string>& captions) const;

  std::unordered_map<std::string, std::int64_t> row_;
  model::PromptIds ids_;
  model::PromptEmbeds states_;
};

}  // namespace sdtune::train
