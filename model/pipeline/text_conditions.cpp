#include "model/pipeline/text_conditions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/core/device_copy.h"
#include "model/pipeline/prompt_chunks.h"

namespace sdtune::model {
namespace {

using Chunks = std::vector<PromptChunk>;

// The chunks of each text of a batch, for one encoder.
struct ChunkedTexts {
  std::vector<Chunks> texts;

  std::size_t most_chunks() const {
    std::size_t most = 0;
    for (const Chunks& chunks : texts) most = std::max(most, chunks.size());
    return most;
  }

  void fill_up(std::size_t count, const ClipTokenizer& tokenizer) {
    for (Chunks& chunks : texts) chunks.resize(count, empty_chunk(tokenizer));
  }

  torch::Tensor ids() const {  // [B x chunks, 77]
    return rows<std::int64_t>(
        torch::kInt64, [](const PromptChunk& chunk) -> const auto& { return chunk.ids; });
  }
  torch::Tensor weights() const {  // [B x chunks, 77]
    return rows<float>(
        torch::kFloat32, [](const PromptChunk& chunk) -> const auto& { return chunk.weights; });
  }

 private:
  template <typename T, typename Part>
  torch::Tensor rows(torch::Dtype dtype, const Part& part) const {
    std::vector<torch::Tensor> all;
    for (const Chunks& chunks : texts) {
      for (const PromptChunk& chunk : chunks) all.push_back(torch::tensor(torch::ArrayRef<T>(part(chunk)), dtype));
    }
    return torch::stack(all);
  }
};

// The same texts for each of the bundle's tokenizers.
struct TextBatch {
  ChunkedTexts first;
  ChunkedTexts second;  // SDXL, else empty

  std::size_t most_chunks() const { return std::max(first.most_chunks(), second.most_chunks()); }
};

TextBatch chunk_texts(const ModelBundle& bundle, const std::vector<std::string>& texts, PromptSyntax syntax) {
  TextBatch batch;
  for (const std::string& text : texts) {
    batch.first.texts.push_back(chunk_prompt({bundle.tokenizer, bundle.learned_tokens}, text, syntax));
    if (bundle.is_xl())
      batch.second.texts.push_back(chunk_prompt({*bundle.tokenizer_2, bundle.learned_tokens_2}, text, syntax));
  }
  return batch;
}

// Means of [R, 77, D] over 77 and D: [R, 1, 1].
struct RowMeans {
  explicit RowMeans(const torch::Tensor& states)
      : value(states.mean({1, 2}, /*keepdim=*/true)),
        is_rounding(value.abs() <= 1e-6 * states.abs().mean({1, 2}, /*keepdim=*/true)) {}
  torch::Tensor value, is_rounding;
};

// [R, 77, D] with the weights [R, 77] of its tokens; each row's mean stays what it was. A quotient of means that are
// rounding of sums alone would be any number: an encoder whose last norm has no bias, for instance. Its rows are
// weighted, and not scaled.
torch::Tensor weighted(const torch::Tensor& states, const torch::Tensor& weights) {
  if (weights.eq(1).all().item<bool>()) return states;
  const torch::Tensor before = states.to(torch::kFloat32);
  const torch::Tensor after = before * copy_to_device(weights, states.device()).unsqueeze(-1);
  const RowMeans old(before), now(after);
  const torch::Tensor factor = (old.value / now.value).masked_fill(old.is_rounding | now.is_rounding, 1.0);
  return (after * factor).to(states.scalar_type());
}

// `count` chunks each, behind each other.
PromptEmbeds encode_batch(ModelBundle& bundle, TextBatch batch, std::size_t count, std::int64_t clip_skip) {
  const auto texts = static_cast<std::int64_t>(batch.first.texts.size());
  const torch::Device device = bundle.text_encoder->parameters().front().device();
  batch.first.fill_up(count, bundle.tokenizer);
  PromptIds ids;
  ids.ids = copy_to_device(batch.first.ids(), device);
  if (bundle.is_xl()) {
    batch.second.fill_up(count, *bundle.tokenizer_2);
    ids.ids_2 = copy_to_device(batch.second.ids(), device);
  }
  PromptEmbeds embeds = encode_prompts(bundle, ids, clip_skip);
  if (bundle.is_xl()) {
    const std::int64_t width = bundle.text_encoder->config().hidden_size;
    const std::int64_t width_2 = bundle.text_encoder_2->config().hidden_size;
    embeds.context = torch::cat({weighted(embeds.context.narrow(-1, 0, width), batch.first.weights()),
                                 weighted(embeds.context.narrow(-1, width, width_2), batch.second.weights())},
                                -1);
    embeds.pooled = embeds.pooled.unflatten(0, {texts, -1}).select(1, 0);  // of the first chunk
  } else {
    embeds.context = weighted(embeds.context, batch.first.weights());
  }
  embeds.context = embeds.context.unflatten(0, {texts, -1}).flatten(1, 2);
  return embeds;
}

// A batch of equal texts is encoded once.
std::vector<std::string> without_repeats(const std::vector<std::string>& texts) {
  const bool equal = std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return text == texts.front(); });
  return equal ? std::vector{texts.front()} : texts;
}

PromptEmbeds expanded(PromptEmbeds embeds, std::int64_t count) {
  if (embeds.context.size(0) == count) return embeds;
  embeds.context = embeds.context.expand({count, -1, -1});
  if (embeds.pooled.defined()) embeds.pooled = embeds.pooled.expand({count, -1});
  return embeds;
}

}  // namespace

GuidedTexts encode_texts(ModelBundle& bundle, const std::vector<std::string>& prompts,
                         const std::optional<std::string>& negative_prompt, const PromptRules& rules, bool guided) {
  TORCH_CHECK(!prompts.empty(), "no prompt");
  const bool zeros = bundle.is_xl() && !negative_prompt && bundle.force_zeros_for_empty_prompt;
  const auto count = static_cast<std::int64_t>(prompts.size());
  TextBatch positive = chunk_texts(bundle, without_repeats(prompts), rules.syntax);
  std::size_t chunks = positive.most_chunks();
  std::optional<TextBatch> negative;
  if (guided && !zeros) {
    negative = chunk_texts(bundle, {negative_prompt.value_or("")}, rules.syntax);
    chunks = std::max(chunks, negative->most_chunks());
  }
  GuidedTexts texts;
  texts.conditional = expanded(encode_batch(bundle, std::move(positive), chunks, rules.clip_skip), count);
  if (negative) {
    const std::int64_t skip = rules.syntax == PromptSyntax::kWeighted ? rules.clip_skip : 0;
    texts.unconditional = expanded(encode_batch(bundle, std::move(*negative), chunks, skip), count);
  } else if (guided) {
    texts.unconditional = {torch::zeros_like(texts.conditional.context), torch::zeros_like(texts.conditional.pooled)};
  }
  return texts;
}

std::int64_t count_cut_tokens(const ModelBundle& bundle, const std::string& prompt) {
  std::int64_t words = 0;
  for (const auto& ids : encode_groups({bundle.tokenizer, bundle.learned_tokens}, prompt)) words += std::ssize(ids);
  return std::max<std::int64_t>(0, words - (bundle.tokenizer.model_max_length() - 2));
}

}  // namespace sdtune::model
