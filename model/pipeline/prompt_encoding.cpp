#include "model/pipeline/prompt_encoding.h"

#include "model/base/clip_tokenizer.h"

namespace sdtune::model {
namespace {

torch::Tensor token_ids(const ClipTokenizer& tokenizer, const std::vector<std::string>& prompts,
                        const torch::Device& device) {
  std::vector<torch::Tensor> rows;
  for (const std::string& prompt : prompts) rows.push_back(torch::tensor(tokenizer(prompt).ids, torch::kInt64));
  return torch::stack(rows).to(device);
}

// The states before the last layer, which SDXL was trained on.
const torch::Tensor& penultimate(const TextOutput& output) {
  return output.hidden_states.at(output.hidden_states.size() - 2);
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

PromptEmbeds encode_prompts(ModelBundle& bundle, const PromptIds& ids) {
  const TextOutput first = bundle.text_encoder->forward(ids.ids);
  if (!bundle.is_xl()) return {first.last_hidden_state, torch::Tensor()};
  const TextOutput second = bundle.text_encoder_2->forward(ids.ids_2);
  return {torch::cat({penultimate(first), penultimate(second)}, -1), second.pooled};
}

}  // namespace sdtune::model
