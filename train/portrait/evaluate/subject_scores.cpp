#include "train/portrait/evaluate/subject_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "train/identity/likeness.h"
#include "train/portrait/evaluate/face_sharpness.h"

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

// The subject as the prompt has it, to know what can be seen: what a hat, hair, a beard or glasses hide. How the head
// of a generated image turns is not known: it is taken as turned to the front.
portrait::Portrait prompted_portrait(const Subject& subject, const EvalPrompt& prompt) {
  portrait::Context now = prompt.context(0, subject.detail);
  now.yaw = now.pitch = now.roll = 0;
  return {{}, subject.who, now, {}};
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

// Of a mark that the subject has; nothing of one that it has not, for everybody else lacks it too.
std::vector<bool> mark_hits(const Subject& subject, const PromptedReading& images, Head head) {
  const portrait::Portrait plain = prompted_portrait(subject, plain_prompt());
  return visible_class(head, plain).value_or(0) == 0 ? std::vector<bool>() : class_hits(subject, images, head);
}

using NamedHits = std::pair<const char*, std::vector<bool>>;

// The mean of the shares under `name`, then each share. Figures without an image that could show them are left out, a
// bald subject's hair colour for instance. The shares are read off the same images and err together, so the interval is
// the mean of theirs, which holds however they depend on each other; the root of the sum of squares holds only where
// they do not.
void add_mean_share(const char* name, const std::vector<NamedHits>& shares, const PromptedReading& images,
                    Scores& scores) {
  Scores each;
  Estimate mean{0, 0, 0, static_cast<std::int64_t>(images.prompts.size())};
  double count = 0;
  for (const auto& [part, hits] : shares) {
    if (hits.empty()) continue;
    const Estimate share = share_of(as_bools(hits));
    each.add(part, share);
    mean.value += share.value;
    mean.low += share.low;
    mean.high += share.high;
    count += 1;
  }
  if (count == 0) return;
  for (double* figure : {&mean.value, &mean.low, &mean.high}) *figure /= count;
  scores.add(name, mean);
  scores.figures.insert(scores.figures.end(), each.figures.begin(), each.figures.end());
}

void add_attributes(const Subject& subject, const PromptedReading& images, Scores& scores) {
  add_mean_share(kAttributeMatch,
                 {{kHairStyle, class_hits(subject, images, Head::kHairStyle)},
                  {kHairColor, class_hits(subject, images, Head::kHairColor)},
                  {kFacialHair, class_hits(subject, images, Head::kFacialHair)},
                  {kSkinTone, skin_hits(subject, images)}},
                 images, scores);
  add_mean_share(kMarksMatch,
                 {{kStreak, mark_hits(subject, images, Head::kStreak)},
                  {kBirthmark, mark_hits(subject, images, Head::kBirthmark)},
                  {kEarrings, mark_hits(subject, images, Head::kEarrings)}},
                 images, scores);
}

void add_sharpness(const PromptedReading& images, const Anchors& anchors, Scores& scores) {
  if (!images.face_energy.defined() || !anchors.face_energy.defined()) return;
  for (std::size_t band = 0; band < kBandNames.size(); ++band) {
    const torch::Tensor column = images.face_energy.select(1, static_cast<std::int64_t>(band));
    const torch::Tensor seen = column.masked_select(column.isfinite());
    const double renders = anchors.face_energy[static_cast<std::int64_t>(band)].item<double>();
    if (seen.numel() == 0 || !(renders > 0)) continue;
    scores.add(kSharpness + std::string(kBandNames.at(band)), mean_of(seen / renders));
  }
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

Anchors measure_anchors(const Subject& subject, const PromptedReading& renders, const classifier::Reading& others,
                        double accepted_from) {
  Anchors anchors;
  anchors.other = likeness_to(subject, others).mean().item<double>();
  anchors.subject = likeness_to(subject, renders.reading).mean().item<double>();
  anchors.copy_threshold = threshold_at(nearest_reference(subject, renders.reading), kCopyShare);
  anchors.accepted_from = accepted_from;
  if (renders.face_energy.defined()) anchors.face_energy = mean_energy(renders.face_energy);
  if (!(anchors.subject > anchors.other)) {
    throw WeightError("classifier",
                      "takes other people for the subject as much as new renders of it, so it can measure nothing",
                      "train it longer, or use the one that is installed");
  }
  return anchors;
}

Estimate prompt_fidelity(const PromptedReading& images) {
  std::vector<bool> hits;
  std::int64_t asked_images = 0;
  double squares = 0;  // of how many things each image was asked
  for (std::size_t i = 0; i < images.prompts.size(); ++i) {
    const std::vector<Asked>& all = eval_prompts()[images.prompts[i]].asked;
    for (const Asked& asked : all) {
      const torch::Tensor read = images.reading.classes(asked.head)[static_cast<std::int64_t>(i)];
      hits.push_back(read.item<std::int64_t>() == asked.shown);
    }
    asked_images += all.empty() ? 0 : 1;
    squares += static_cast<double>(all.size() * all.size());
  }
  // Answers of one image err together. At the worst they are all alike, and then as sure as this many (Kish 1965).
  const auto asked = static_cast<double>(hits.size());
  Estimate share = share_of(as_bools(hits), asked * asked / squares);
  share.count = asked_images;
  return share;
}

Scores score_subject(const Subject& subject, const PromptedReading& images, const Anchors& anchors) {
  const torch::Tensor likeness = likeness_to(subject, images.reading);
  Scores scores;
  scores.add(kPromptFidelity, prompt_fidelity(images));
  scores.add(kSubjectFidelity, mean_of((likeness - anchors.other) / (anchors.subject - anchors.other)));
  scores.add(kAccepted, share_of(are_accepted(likeness, anchors.accepted_from)));
  add_attributes(subject, images, scores);
  add_sharpness(images, anchors, scores);
  const torch::Tensor nearest = nearest_reference(subject, images.reading);
  scores.add(kCopied, share_of(are_accepted(nearest, anchors.copy_threshold)));
  const std::vector<bool> repeated = repeated_contexts(subject, images);
  if (!repeated.empty()) scores.add(kRepeatedContext, share_of(as_bools(repeated)));
  return scores;
}

}  // namespace sdtune::train::evaluate
