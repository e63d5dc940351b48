#include "train/portrait/evaluate/class_scores.h"

#include <array>

#include "train/identity/likeness.h"
#include "train/portrait/evaluate/frechet.h"

namespace sdtune::train::evaluate {
namespace {

using classifier::Head;

constexpr std::int64_t kToneSteps = 4;

// Bits, of classes [n] int64.
double entropy(const torch::Tensor& classes) {
  const torch::Tensor counts = torch::bincount(classes).to(torch::kFloat64);
  const torch::Tensor shares = counts.masked_select(counts.gt(0)) / static_cast<double>(classes.numel());
  return -(shares * shares.log2()).sum().item<double>();
}

}  // namespace

double diversity(const classifier::Reading& reading, const torch::Tensor& rows) {
  double bits = 0;
  for (const Head head : {Head::kHairStyle, Head::kHairColor, Head::kFacialHair}) {
    bits += entropy(reading.classes(head).index_select(0, rows));
  }
  const torch::Tensor tone = reading.numbers.select(1, classifier::kSkinTone).index_select(0, rows);
  return bits + entropy((tone * kToneSteps).floor().clamp(0, kToneSteps - 1).to(torch::kInt64));
}

Scores score_class(const Subject& subject, const ClassReading& images, const classifier::Reading& renders,
                   const Anchors& anchors) {
  const classifier::Reading& plain = images.plain;
  const std::int64_t count = plain.features.size(0);
  Scores scores;
  scores.add(kClassFidelity, prompt_fidelity(images.prompted));
  scores.add(kClassDiversity, jackknife(count, [&](const torch::Tensor& rows) { return diversity(plain, rows); }));
  scores.add(kLeak, share_of(are_accepted(likeness_to(subject, plain), anchors.accepted_from)));
  scores.add(kFrechetDistance, jackknife(count, [&](const torch::Tensor& rows) {
               return frechet_distance(plain.features.index_select(0, rows), renders.features);
             }));
  return scores;
}

}  // namespace sdtune::train::evaluate
