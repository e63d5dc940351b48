#include "train/portrait/evaluate/subject_scores.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/error.h"
#include "train/identity/likeness.h"

namespace sdtune::train::evaluate {
namespace {

using classifier::Head;

constexpr double kCopyShare = 0.01;
constexpr double kSkinToneError = 0.25;

torch::Tensor as_bools(const std::vector<bool>& hits) {
  torch::Tensor values = torch::empty({static_cast<std::int64_t>(hits.size())}, torch::kBool);
  for (std::size_t i = 0; i < hits.size(); ++i) values[static_cast<std::int64_t>(i)] = static_cast<bool>(hits[i]);
  return values;
}

torch::Tensor unit_rows(const torch::Tensor& rows) {
  return rows / rows.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-6);
}

// [N]: the likeness of each image's features to those of the nearest reference.
torch::Tensor nearest_reference(const Subject& subject, const classifier::Reading& reading) {
  const torch::Tensor likeness = torch::matmul(unit_rows(reading.features), unit_rows(subject.reading.features).t());
  return std::get<0>(likeness.max(1));
}

// The subject as the prompt has it, to know what can be seen.
portrait::Portrait prompted_portrait(const Subject& subject, const EvalPrompt& prompt) {
  return {{}, subject.who, prompt.context(0), {}};
}

// The subject's attribute in each image that can show it.
std::vector<bool> class_hits(const Subject& subject, const PromptedReading& images, Head head) {
  const torch::Tensor read = images.reading.classes(head);
  std::vector<bool> hits;
  for (std::size_t i = 0; i < images.prompts.size(); ++i) {
    const auto truth = visible_class(head, prompted_portrait(subject, eval_prompts()[images.prompts[i]]));
    if (truth) hits.push_back(read[static_cast<std::int64_t>(i)].item<std::int64_t>() == *truth);
  }
  return hits;
}

std::vector<bool> skin_hits(const Subject& subject, const PromptedReading& images) {
  std::vector<bool> hits;
  for (std::size_t i = 0; i < images.prompts.size(); ++i) {
    const auto truth = classifier::visible_number(classifier::kSkinTone,
                                                  prompted_portrait(subject, eval_prompts()[images.prompts[i]]));
    const auto row = static_cast<std::int64_t>(i);
    const double read = images.reading.numbers[row][classifier::kSkinTone].item<double>();
    if (truth) hits.push_back(std::abs(read - *truth) < kSkinToneError);
  }
  return hits;
}

// A bald subject has no hair colour to match: such figures are left out.
void add_attributes(const Subject& subject, const PromptedReading& images, Scores& scores) {
  const std::array<std::pair<const char*, std::vector<bool>>, 4> attributes = {
      {{kHairStyle, class_hits(subject, images, Head::kHairStyle)},
       {kHairColor, class_hits(subject, images, Head::kHairColor)},
       {kFacialHair, class_hits(subject, images, Head::kFacialHair)},
       {kSkinTone, skin_hits(subject, images)}}};
  Scores each;
  Estimate mean{0, 0, 0, static_cast<std::int64_t>(images.prompts.size())};
  double variance = 0, count = 0;
  for (const auto& [name, hits] : attributes) {
    if (hits.empty()) continue;
    const Estimate share = share_of(as_bools(hits));
    each.add(name, share);
    const double half = (share.high - share.low) / 2;
    mean.value += share.value;
    variance += half * half;
    count += 1;
  }
  mean.value /= count;
  const double half = std::sqrt(variance) / count;
  mean.low = std::max(0.0, mean.value - half);
  mean.high = std::min(1.0, mean.value + half);
  scores.add(kAttributeMatch, mean);
  scores.figures.insert(scores.figures.end(), each.figures.begin(), each.figures.end());
}

// Of photos whose prompt asks for neither place nor clothes: does one of the references' places come with its clothes?
std::vector<bool> repeated_contexts(const Subject& subject, const PromptedReading& images) {
  const std::array<Head, 3> heads = {Head::kPlace, Head::kClothes, Head::kClothesColor};
  std::vector<bool> hits;
  for (std::size_t i = 0; i < images.prompts.size(); ++i) {
    const EvalPrompt& prompt = eval_prompts()[images.prompts[i]];
    if (std::any_of(heads.begin(), heads.end(), [&](Head head) { return prompt.asks(head); })) continue;
    if (prompt.asks(Head::kStyle)) continue;
    torch::Tensor same = torch::ones({subject.references.size(0)}, torch::kBool);
    for (const Head head : heads) {
      const torch::Tensor read = images.reading.classes(head)[static_cast<std::int64_t>(i)];
      same = same.logical_and(subject.reading.classes(head).eq(read));
    }
    hits.push_back(same.any().item<bool>());
  }
  return hits;
}

}  // namespace

torch::Tensor likeness_to(const Subject& subject, const classifier::Reading& reading) {
  return torch::mv(reading.embedding, subject.mean_embedding);
}

Anchors measure_anchors(const Subject& subject, const classifier::Reading& renders, const classifier::Reading& others,
                        double accepted_from) {
  Anchors anchors;
  anchors.other = likeness_to(subject, others).mean().item<double>();
  anchors.subject = likeness_to(subject, renders).mean().item<double>();
  anchors.copy_threshold = threshold_at(nearest_reference(subject, renders), kCopyShare);
  anchors.accepted_from = accepted_from;
  if (!(anchors.subject > anchors.other)) {
    throw WeightError("classifier",
                      "takes other people for the subject as much as new renders of it, so it can measure nothing",
                      "train it longer, or use the one that is installed");
  }
  return anchors;
}

Estimate prompt_fidelity(const PromptedReading& images) {
  std::vector<bool> hits;
  for (std::size_t i = 0; i < images.prompts.size(); ++i) {
    for (const Asked& asked : eval_prompts()[images.prompts[i]].asked) {
      const torch::Tensor read = images.reading.classes(asked.head)[static_cast<std::int64_t>(i)];
      hits.push_back(read.item<std::int64_t>() == asked.shown);
    }
  }
  return share_of(as_bools(hits));
}

Scores score_subject(const Subject& subject, const PromptedReading& images, const Anchors& anchors) {
  const torch::Tensor likeness = likeness_to(subject, images.reading);
  Scores scores;
  scores.add(kPromptFidelity, prompt_fidelity(images));
  scores.add(kSubjectFidelity, mean_of((likeness - anchors.other) / (anchors.subject - anchors.other)));
  scores.add(kAccepted, share_of(likeness.ge(anchors.accepted_from)));
  add_attributes(subject, images, scores);
  scores.add(kCopied, share_of(nearest_reference(subject, images.reading).ge(anchors.copy_threshold)));
  const std::vector<bool> repeated = repeated_contexts(subject, images);
  if (!repeated.empty()) scores.add(kRepeatedContext, share_of(as_bools(repeated)));
  return scores;
}

}  // namespace sdtune::train::evaluate
