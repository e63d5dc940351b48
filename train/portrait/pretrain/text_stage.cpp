#include "train/portrait/pretrain/text_stage.h"

#include <algorithm>
#include <utility>

#include "train/portrait/classifier/classifier_labels.h"
#include "train/portrait/classifier/classifier_loss.h"
#include "train/portrait/pretrain/initial_weights.h"
#include "train/portrait/renderer/caption.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::uint64_t kTextSeed = std::uint64_t{0x74657874}
                                    << 16;  // "text": apart from the random draws of other stages
constexpr std::uint64_t kHeadWeights = 4;   // stream of initial weights, after the base's parts and the classifier
constexpr std::int64_t kPadsRead = 3;       // the UNet attends to the states behind the end as well

// Captions have no words for the marks.
torch::Tensor sayable(torch::Tensor classes) {
  const auto first = static_cast<std::int64_t>(classifier::Head::kStreak);
  classes.narrow(1, first, classes.size(1) - first).fill_(classifier::kHidden);
  return classes;
}

}  // namespace

TextStage::TextStage(model::ModelBundle& bundle, const ImagePool& pool, std::uint64_t seed, std::int64_t batch_size)
    : bundle_(bundle),
      pool_(pool),
      seed_(seed ^ kTextSeed),
      batch_size_(batch_size),
      order_(seed_, pool.count(), ImagePool::kShard),
      attribute_head_(bundle.text_encoder->config().hidden_size, classifier::column_count()) {
  draw_initial_weights(*attribute_head_, seed, kHeadWeights);
  attribute_head_->to(bundle.device());
}

std::vector<NamedParameter> TextStage::parameters() const {
  std::vector<NamedParameter> list;
  for (const auto& item : bundle_.text_encoder->named_parameters()) {
    list.push_back({"text_encoder." + item.key(), item.value()});
  }
  for (const auto& item : attribute_head_->named_parameters()) {
    list.push_back({"attribute_head." + item.key(), item.value()});
  }
  return list;
}

torch::Tensor TextStage::logits(const std::vector<std::string>& texts) {
  const std::int64_t eos = bundle_.tokenizer.eos_token_id();
  std::vector<torch::Tensor> rows;
  std::vector<std::int64_t> ends;
  for (const std::string& text : texts) {
    const std::vector<std::int64_t> ids = bundle_.tokenizer(text).ids;
    ends.push_back(std::find(ids.begin(), ids.end(), eos) - ids.begin());
    rows.push_back(torch::tensor(ids));
  }
  // The attention is causal, so what lies further behind the longest text changes nothing.
  const std::int64_t all = rows.front().size(0);
  const std::int64_t length = std::min(all, *std::max_element(ends.begin(), ends.end()) + 1 + kPadsRead);
  const torch::Device device = bundle_.device();
  const torch::Tensor ids = torch::stack(rows).narrow(1, 0, length).contiguous().to(device);
  const torch::Tensor place = torch::arange(length).unsqueeze(0), end = torch::tensor(ends).unsqueeze(1);
  const torch::Tensor read = place.ge(end).logical_and(place.le(end + kPadsRead)).to(device);  // [B, length]
  const torch::Tensor states = bundle_.text_encoder->forward(ids).last_hidden_state;           // [B, length, D]
  const torch::Tensor mean = (states * read.unsqueeze(2)).sum(1) / read.sum(1, /*keepdim=*/true);
  return attribute_head_->forward(mean);
}

torch::Tensor TextStage::loss(std::uint64_t step) {
  const std::uint64_t first = step * static_cast<std::uint64_t>(batch_size_);
  const std::vector<std::int64_t> indices = order_.images(first, batch_size_);
  std::vector<portrait::Portrait> portraits;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    portraits.push_back(pool_.portrait(indices[i]));
    texts.push_back(
        portrait::caption(portraits.back().who, portraits.back().now, order_.caption_seed(indices[i], first + i)));
  }
  const torch::Tensor classes = sayable(classifier::labels_of(portraits).classes).to(bundle_.device());
  return classifier::class_loss(logits(texts).to(torch::kFloat32), classes);
}

}  // namespace sdtune::train::pretrain
