#include "train/identity/identity_evaluator.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/error.h"
#include "train/identity/likeness.h"

namespace sdtune::train {
namespace {

// Of each photo to the others together; a single one has nothing to differ from.
double mutual_likeness(const torch::Tensor& embeddings) {
  const std::int64_t count = embeddings.size(0);
  if (count == 1) return 1.0;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const torch::Tensor others = torch::cat({embeddings.narrow(0, 0, i), embeddings.narrow(0, i + 1, count - i - 1)});
    sum += embeddings[i].dot(mean_embedding(others)).item<double>();
  }
  return sum / static_cast<double>(count);
}

double share_shown(const IdentityReading& reading, std::int64_t first, std::int64_t count) {
  const double asked = reading.asked.narrow(0, first, count).sum().item<double>();
  return asked > 0 ? reading.shown.narrow(0, first, count).sum().item<double>() / asked : 1.0;
}

}  // namespace

double IdentityScores::total() const {
  return std::min(identity, 1.0) + prompt_fidelity - leak;
}

std::string class_words_of(const std::string& class_prompt) {
  const std::size_t of = class_prompt.find(" of ");
  return of == std::string::npos ? class_prompt : class_prompt.substr(of + 4);
}

IdentityEvaluator::IdentityEvaluator(std::unique_ptr<IdentityReader> reader,
                                     const std::vector<IdentitySubject>& subjects, const IdentityPlan& plan)
    : reader_(std::move(reader)), plan_(plan) {
  for (const IdentitySubject& subject : subjects) {
    ask_for(subject, plan_, images_);
    subjects_.push_back(anchor(subject));
  }
}

void IdentityEvaluator::ask_for(const IdentitySubject& subject, const IdentityPlan& plan,
                                std::vector<IdentityImage>& images) {
  const std::string class_words = class_words_of(subject.class_prompt);
  for (std::int64_t i = 0; i < plan.subject_images; ++i) {
    const std::size_t asked = static_cast<std::size_t>(i) % identity_prompts().size();
    images.push_back(
        {identity_prompts()[asked].text(subject.words), plan.seed + static_cast<std::uint64_t>(i), asked, class_words});
  }
  for (std::int64_t i = 0; i < plan.class_images; ++i) {
    images.push_back({subject.class_prompt, plan.seed + static_cast<std::uint64_t>(i), std::nullopt, class_words});
  }
}

IdentityEvaluator::Anchored IdentityEvaluator::anchor(const IdentitySubject& subject) {
  const torch::Tensor embeddings = reader_->embed(subject.references);
  const torch::Tensor others = reader_->others(subject.class_prompt);
  Anchored anchored;
  anchored.mean_embedding = mean_embedding(embeddings);
  anchored.self = mutual_likeness(embeddings);
  if (others.size(0) == 0) return anchored;  // asked to stop: nothing will be scored
  anchored.other = torch::mv(others, anchored.mean_embedding).mean().item<double>();
  anchored.threshold = reader_->threshold().value_or((anchored.self + anchored.other) / 2);
  if (!(anchored.self > anchored.other)) {
    throw WeightError(reader_->name(),
                      "takes other people for the subject of \"" + subject.words +
                          "\" as much as its own photos, so it can say nothing of likeness",
                      "do the photos show one person? identity_steps: none trains without identity evaluation");
  }
  return anchored;
}

IdentityScores IdentityEvaluator::score(const torch::Tensor& generated) {
  if (generated.size(0) != static_cast<std::int64_t>(images_.size()))
    throw std::invalid_argument("not all images were generated");
  const IdentityReading reading = reader_->read(generated, images_);
  const double share = 1.0 / static_cast<double>(subjects_.size());
  IdentityScores scores;
  std::int64_t first = 0;
  for (const Anchored& subject : subjects_) {
    const torch::Tensor likeness = torch::mv(reading.embedding, subject.mean_embedding);
    const torch::Tensor own = likeness.narrow(0, first, plan_.subject_images);
    const torch::Tensor of_class = likeness.narrow(0, first + plan_.subject_images, plan_.class_images);
    scores.identity += share * (own.mean().item<double>() - subject.other) / (subject.self - subject.other);
    scores.accepted += share * share_accepted(own, subject.threshold);
    scores.prompt_fidelity += share * share_shown(reading, first, plan_.subject_images);
    scores.leak += share * share_accepted(of_class, subject.threshold);
    first += plan_.subject_images + plan_.class_images;
  }
  return scores;
}

}  // namespace sdtune::train
