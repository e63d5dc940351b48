#include "train/evaluate/identity_probe.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/error.h"
#include "train/judge/identity_scores.h"

namespace sdtune::train::evaluate {
namespace {

// Of each photo to the others together; a single one has nothing to differ from.
double mutual_likeness(const torch::Tensor& embeddings) {
  const std::int64_t count = embeddings.size(0);
  if (count == 1) return 1.0;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const torch::Tensor others = torch::cat({embeddings.narrow(0, 0, i), embeddings.narrow(0, i + 1, count - i - 1)});
    sum += embeddings[i].dot(judge::mean_embedding(others)).item<double>();
  }
  return sum / static_cast<double>(count);
}

double share_shown(const ProbeReading& reading, std::int64_t first, std::int64_t count) {
  const double asked = reading.asked.narrow(0, first, count).sum().item<double>();
  return asked > 0 ? reading.shown.narrow(0, first, count).sum().item<double>() / asked : 1.0;
}

}  // namespace

double ProbeScores::total() const {
  return std::min(identity, 1.0) + prompt_fidelity - leak;
}

std::string class_words_of(const std::string& class_prompt) {
  const std::size_t of = class_prompt.find(" of ");
  return of == std::string::npos ? class_prompt : class_prompt.substr(of + 4);
}

IdentityProbe::IdentityProbe(std::unique_ptr<ProbeReader> reader, const std::vector<ProbeSubject>& subjects,
                             const ProbePlan& plan)
    : reader_(std::move(reader)), plan_(plan) {
  for (const ProbeSubject& subject : subjects) {
    ask_for(subject, plan_, pictures_);
    subjects_.push_back(anchor(subject));
  }
}

void IdentityProbe::ask_for(const ProbeSubject& subject, const ProbePlan& plan, std::vector<ProbePicture>& pictures) {
  const std::string class_words = class_words_of(subject.class_prompt);
  for (std::int64_t i = 0; i < plan.subject_pictures; ++i) {
    const std::size_t asked = static_cast<std::size_t>(i) % probe_prompts().size();
    pictures.push_back(
        {probe_prompts()[asked].text(subject.words), plan.seed + static_cast<std::uint64_t>(i), asked, class_words});
  }
  for (std::int64_t i = 0; i < plan.class_pictures; ++i) {
    pictures.push_back({subject.class_prompt, plan.seed + static_cast<std::uint64_t>(i), std::nullopt, class_words});
  }
}

IdentityProbe::Anchored IdentityProbe::anchor(const ProbeSubject& subject) {
  const torch::Tensor embeddings = reader_->embed(subject.references);
  const torch::Tensor others = reader_->others(subject.class_prompt);
  Anchored anchored;
  anchored.mean_embedding = judge::mean_embedding(embeddings);
  anchored.self = mutual_likeness(embeddings);
  if (others.size(0) == 0) return anchored;  // asked to stop: nothing will be scored
  anchored.other = torch::mv(others, anchored.mean_embedding).mean().item<double>();
  anchored.threshold = reader_->threshold().value_or((anchored.self + anchored.other) / 2);
  if (!(anchored.self > anchored.other)) {
    throw WeightError(reader_->name(),
                      "takes other people for the subject of \"" + subject.words +
                          "\" as much as its own photos, so it can say nothing of likeness",
                      "do the photos show one person? identity_steps: none trains without looking");
  }
  return anchored;
}

ProbeScores IdentityProbe::score(const torch::Tensor& drawn) {
  if (drawn.size(0) != static_cast<std::int64_t>(pictures_.size())) throw std::invalid_argument("not all was drawn");
  const ProbeReading reading = reader_->read(drawn, pictures_);
  const double share = 1.0 / static_cast<double>(subjects_.size());
  ProbeScores scores;
  std::int64_t first = 0;
  for (const Anchored& subject : subjects_) {
    const torch::Tensor likeness = torch::mv(reading.embedding, subject.mean_embedding);
    const torch::Tensor own = likeness.narrow(0, first, plan_.subject_pictures);
    const torch::Tensor of_class = likeness.narrow(0, first + plan_.subject_pictures, plan_.class_pictures);
    scores.identity += share * (own.mean().item<double>() - subject.other) / (subject.self - subject.other);
    scores.accepted += share * judge::share_accepted(own, subject.threshold);
    scores.prompt_fidelity += share * share_shown(reading, first, plan_.subject_pictures);
    scores.leak += share * judge::share_accepted(of_class, subject.threshold);
    first += plan_.subject_pictures + plan_.class_pictures;
  }
  return scores;
}

}  // namespace sdtune::train::evaluate
