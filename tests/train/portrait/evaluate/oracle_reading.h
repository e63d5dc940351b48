// What a classifier without fault would say of renders: known inputs for every figure.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "train/portrait/classifier/classifier_labels.h"
#include "train/portrait/evaluate/subject_scores.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::test {

// Vectors of length 1 that depend on a seed alone; those of different seeds stand nearly upright on each other.
inline torch::Tensor direction_of(std::uint64_t seed, std::int64_t size) {
  torch::manual_seed(static_cast<std::int64_t>(seed % 1'000'003));
  const torch::Tensor vector = torch::randn({size});
  return vector / vector.norm();
}

// Classes and numbers are the truth (class 0 where it is hidden). The embedding is the person's direction with a little
// of the image's, the features the image's with a little of the person's.
inline train::classifier::Reading oracle_reading(const std::vector<train::portrait::Portrait>& portraits) {
  namespace classifier = train::classifier;
  const auto count = static_cast<std::int64_t>(portraits.size());
  const classifier::Labels labels = classifier::labels_of(portraits);
  classifier::Reading reading{torch::zeros({count, classifier::column_count()}),
                              labels.numbers.nan_to_num(0.0),
                              torch::empty({count, classifier::kFeatures}),
                              torch::empty({count, classifier::kEmbeddingSize}),
                              {},
                              {}};
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::size_t head = 0; head < classifier::kHeadCount; ++head) {
      const auto shown = labels.classes[row][static_cast<std::int64_t>(head)].item<std::int64_t>();
      const std::int64_t column =
          classifier::first_column(static_cast<classifier::Head>(head)) + std::max<std::int64_t>(0, shown);
      reading.probabilities[row][column] = 1.0;
    }
    const train::portrait::ImageSeeds seeds = portraits[static_cast<std::size_t>(row)].seeds;
    const torch::Tensor person = direction_of(seeds.person, classifier::kEmbeddingSize);
    const torch::Tensor noisy = person + 0.2 * direction_of(seeds.image + 7, classifier::kEmbeddingSize);
    reading.embedding[row] = noisy / noisy.norm();
    reading.features[row] =
        direction_of(seeds.image, classifier::kFeatures) + direction_of(seeds.person, classifier::kFeatures);
  }
  return reading;
}

// `times` portraits for each evaluation prompt: of reserved person `number`, from view `first_view` on ...
inline std::vector<train::portrait::Portrait> prompted_portraits(std::uint64_t number, std::uint64_t first_view,
                                                                 std::int64_t times) {
  namespace portrait = train::portrait;
  std::vector<portrait::Portrait> portraits;
  for (const train::evaluate::EvalPrompt& prompt : train::evaluate::eval_prompts()) {
    for (std::int64_t i = 0; i < times; ++i) {
      const auto seeds = portrait::image_seeds(portrait::PortraitSet::kReserved, number, first_view + portraits.size());
      portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt.context(seeds.image), {}});
    }
  }
  return portraits;
}

// ... or of another person each.
inline std::vector<train::portrait::Portrait> other_portraits(std::uint64_t first_person, std::int64_t times) {
  namespace portrait = train::portrait;
  std::vector<portrait::Portrait> portraits;
  for (const train::evaluate::EvalPrompt& prompt : train::evaluate::eval_prompts()) {
    for (std::int64_t i = 0; i < times; ++i) {
      const auto seeds = portrait::image_seeds(portrait::PortraitSet::kValidation, first_person + portraits.size(), 0);
      portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt.context(seeds.image), {}});
    }
  }
  return portraits;
}

inline train::evaluate::PromptedReading prompted(const std::vector<train::portrait::Portrait>& portraits) {
  const std::size_t times = portraits.size() / train::evaluate::eval_prompts().size();
  train::evaluate::PromptedReading reading{oracle_reading(portraits), {}, {}};
  for (std::size_t i = 0; i < portraits.size(); ++i) reading.prompts.push_back(i / times);
  return reading;
}

// A subject as its five first views show it to the oracle.
inline train::evaluate::Subject oracle_subject(std::uint64_t number) {
  namespace portrait = train::portrait;
  std::vector<portrait::Portrait> views;
  for (std::uint64_t view = 0; view < 5; ++view) {
    views.push_back(portrait::draw_portrait(portrait::image_seeds(portrait::PortraitSet::kReserved, number, view)));
  }
  train::evaluate::Subject subject;
  subject.number = number;
  subject.who = views.front().who;
  subject.references = torch::zeros({5, 3, 64, 64});
  subject.reading = oracle_reading(views);
  const torch::Tensor mean = subject.reading.embedding.mean(0);
  subject.mean_embedding = mean / mean.norm();
  return subject;
}

}  // namespace sdtune::test
