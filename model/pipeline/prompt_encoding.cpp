#include "model/pipeline/prompt_encoding.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/core/device_copy.h"
#include "model/tokenizer/clip_tokenizer.h"

namespace sdtune::model {
namespace {

torch::Tensor token_ids(const ClipTokenizer& tokenizer, const std::vector<std::string>& prompts,
                        const torch::Device& device) {
  std::vector<torch::Tensor> rows;
  for (const std::string& prompt : prompts) rows.push_back(torch::tensor(tokenizer(prompt).ids, torch::kInt64));
  return copy_to_device(torch::stack(rows), device);
}

// SDXL was trained on the states before the last layer.
constexpr std::int64_t kPenultimate = 1;

void check_clip_skip(ModelBundle& bundle, std::int64_t clip_skip) {
  std::int64_t most = bundle.text_encoder->config().num_hidden_layers;
  if (bundle.is_xl()) most = std::min(most, bundle.text_encoder_2->config().num_hidden_layers) - kPenultimate;
  if (clip_skip < 0 || clip_skip > most) {
    throw ConfigError("clip_skip", "the text encoder has not so many layers (got " + std::to_string(clip_skip) +
                                       "; allowed: 0.." + std::to_string(most) + ")");
  }
}

// The output of the layer that stands `skipped` before the last one.
const torch::Tensor& layer_output(const TextOutput& output, std::int64_t skipped) {
  return output.hidden_states.at(output.hidden_states.size() - 1 - static_cast<std::size_t>(skipped));
}

}  // namespace

PromptIds tokenize_prompts(const ModelBundle& bundle, const std::vector<std::string>& prompts) {
  TORCH_CHECK(!prompts.empty(), "no prompt");
  const torch::Device device = bundle.text_encoder->parameters().front().device();
  PromptIds out;
  out.ids = token_ids(bundle.tokenizer, prompts, device);
  if (bundle.tokenizer_2) out.ids_2 = token_ids(*bundle.tokenizer_2, prompts, device);
  return out;
}

PromptEmbeds encode_prompts(ModelBundle& bundle, const PromptIds& ids, std::int64_t clip_skip) {
  check_clip_skip(bundle, clip_skip);
  const TextOutput first = bundle.text_encoder->forward(ids.ids);
  if (!bundle.is_xl()) {
    if (clip_skip == 0) return {first.last_hidden_state, torch::Tensor()};
    return {bundle.text_encoder->final_norm(layer_output(first, clip_skip)), torch::Tensor()};
  }
  const TextOutput second = bundle.text_encoder_2->forward(ids.ids_2);
  const std::int64_t skipped = kPenultimate + clip_skip;
  return {torch::cat({layer_output(first, skipped), layer_output(second, skipped)}, -1), second.pooled};
}

}  // namespace sdtune::model
