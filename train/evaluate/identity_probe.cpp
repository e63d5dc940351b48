#include "train/evaluate/identity_probe.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/error.h"
#include "train/judge/identity_scores.h"
#include "train/judge/portrait_pictures.h"
#include "train/portrait/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::int64_t kOtherPictures = 64;
// Nobody of `eval`, and nobody whom the judge was measured on.
constexpr std::uint64_t kOtherPeople = 400'000;

const EvalPrompt& prompt_of(std::int64_t picture) {
  return probe_prompts()[static_cast<std::size_t>(picture) % probe_prompts().size()];
}

// [kOtherPictures, 3, 64, 64]: somebody else each, in what the prompts ask for.
torch::Tensor render_others() {
  std::vector<portrait::Portrait> portraits;
  for (std::int64_t i = 0; i < kOtherPictures; ++i) {
    const portrait::PictureSeeds seeds =
        portrait::picture_seeds(portrait::PortraitSet::kValidation, kOtherPeople + static_cast<std::uint64_t>(i), 0);
    portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt_of(i).context(seeds.picture), {}});
  }
  return judge::portrait_pictures(portraits, judge::kJudgeSize, 1);
}

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

double share_read_back(const judge::Reading& reading, std::int64_t first, std::int64_t count) {
  double asked = 0, right = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Asked& one : prompt_of(i).asked) {
      asked += 1;
      right += reading.classes(one.head)[first + i].item<std::int64_t>() == one.shown ? 1 : 0;
    }
  }
  return asked > 0 ? right / asked : 1.0;
}

}  // namespace

double ProbeScores::total() const {
  return std::min(identity, 1.0) + prompt_fidelity - leak;
}

IdentityProbe::IdentityProbe(judge::Judge judge, const std::vector<ProbeSubject>& subjects, const ProbePlan& plan)
    : judge_(std::move(judge)), plan_(plan) {
  const torch::Tensor others = judge_.read(render_others()).embedding;
  for (const ProbeSubject& subject : subjects) {
    ask_for(subject, plan_, pictures_);
    subjects_.push_back(anchor(subject, others));
  }
}

void IdentityProbe::ask_for(const ProbeSubject& subject, const ProbePlan& plan, std::vector<ProbePicture>& pictures) {
  for (std::int64_t i = 0; i < plan.subject_pictures; ++i) {
    pictures.push_back({prompt_of(i).text(subject.words), plan.seed + static_cast<std::uint64_t>(i)});
  }
  for (std::int64_t i = 0; i < plan.class_pictures; ++i) {
    pictures.push_back({subject.class_prompt, plan.seed + static_cast<std::uint64_t>(i)});
  }
}

IdentityProbe::Anchored IdentityProbe::anchor(const ProbeSubject& subject, const torch::Tensor& others) {
  const torch::Tensor embeddings = judge_.read(subject.references).embedding;
  Anchored anchored;
  anchored.mean_embedding = judge::mean_embedding(embeddings);
  anchored.other = torch::mv(others, anchored.mean_embedding).mean().item<double>();
  anchored.self = mutual_likeness(embeddings);
  if (!(anchored.self > anchored.other)) {
    throw WeightError("judge",
                      "takes other people for the subject of \"" + subject.words +
                          "\" as much as its own photos, so it can say nothing of likeness",
                      "do the photos show one person? identity_steps: none trains without looking");
  }
  return anchored;
}

ProbeScores IdentityProbe::score(const torch::Tensor& drawn) {
  if (drawn.size(0) != static_cast<std::int64_t>(pictures_.size())) throw std::invalid_argument("not all was drawn");
  const judge::Reading reading = judge_.read(drawn);
  const double threshold = judge_.figures().by_references.threshold;
  const double share = 1.0 / static_cast<double>(subjects_.size());
  ProbeScores scores;
  std::int64_t first = 0;
  for (const Anchored& subject : subjects_) {
    const torch::Tensor likeness = torch::mv(reading.embedding, subject.mean_embedding);
    const torch::Tensor own = likeness.narrow(0, first, plan_.subject_pictures);
    const torch::Tensor of_class = likeness.narrow(0, first + plan_.subject_pictures, plan_.class_pictures);
    scores.identity += share * (own.mean().item<double>() - subject.other) / (subject.self - subject.other);
    scores.accepted += share * judge::share_accepted(own, threshold);
    scores.prompt_fidelity += share * share_read_back(reading, first, plan_.subject_pictures);
    scores.leak += share * judge::share_accepted(of_class, threshold);
    first += plan_.subject_pictures + plan_.class_pictures;
  }
  return scores;
}

}  // namespace sdtune::train::evaluate
