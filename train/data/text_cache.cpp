#include "train/data/text_cache.h"

#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <stdexcept>

#include "model/base/error.h"
#include "model/core/device_copy.h"

namespace sdtune::train {

namespace {

// Captions encoded at once: enough to keep cores busy, few enough for any device.
constexpr std::int64_t kEncodeBatch = 8;

torch::Tensor pick(const torch::Tensor& table, const torch::Tensor& rows) {
  return table.defined() ? table.index_select(0, model::copy_to_device(rows, table.device())) : torch::Tensor();
}

torch::Tensor part(const torch::Tensor& table, std::int64_t begin, std::int64_t end) {
  return table.defined() ? table.slice(0, begin, end) : torch::Tensor();
}

model::PromptEmbeds encode_in_parts(const model::PromptIds& ids, const TextCache::Encode& encode) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> contexts, pooled;
  for (std::int64_t begin = 0; begin < ids.ids.size(0); begin += kEncodeBatch) {
    const std::int64_t end = std::min(begin + kEncodeBatch, ids.ids.size(0));
    const model::PromptEmbeds embeds = encode({part(ids.ids, begin, end), part(ids.ids_2, begin, end)});
    contexts.push_back(embeds.context);
    if (embeds.pooled.defined()) pooled.push_back(embeds.pooled);
  }
  return {torch::cat(contexts), pooled.empty() ? torch::Tensor() : torch::cat(pooled)};
}

}  // namespace

TextCache::TextCache(const std::vector<std::string>& captions, const Tokenize& tokenize, const Encode& encode) {
  std::vector<std::string> distinct;
  for (const std::string& caption : captions) {
    if (row_.emplace(caption, static_cast<std::int64_t>(distinct.size())).second) distinct.push_back(caption);
  }
  if (distinct.empty()) throw DataError("instance_prompt", "there is no caption");
  ids_ = tokenize(distinct);
  if (encode) states_ = encode_in_parts(ids_, encode);
}

torch::Tensor TextCache::rows(const std::vector<std::string>& captions) const {
  std::vector<std::int64_t> rows;
  for (const std::string& caption : captions) {
    const auto at = row_.find(caption);
    if (at == row_.end())
      throw DataError("caption", "was not known when the captions were read (got '" + caption + "')");
    rows.push_back(at->second);
  }
  return torch::tensor(rows, torch::kInt64);
}

model::PromptIds TextCache::ids(const std::vector<std::string>& captions) const {
  const torch::Tensor chosen = rows(captions);
  return {pick(ids_.ids, chosen), pick(ids_.ids_2, chosen)};
}

model::PromptEmbeds TextCache::states(const std::vector<std::string>& captions) const {
  if (!has_states()) throw std::logic_error("prompt embeddings are asked for, but the text encoder is being trained");
  const torch::Tensor chosen = rows(captions);
  return {pick(states_.context, chosen), pick(states_.pooled, chosen)};
}

}  // namespace sdtune::train
