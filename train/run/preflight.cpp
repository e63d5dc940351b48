#include "train/run/preflight.h"

#include <algorithm>

#include "train/run/preflight_checks.h"

namespace sdtune::train {

namespace {

std::vector<Problem> problems_of(const TrainConfig& config, Diagnosis* advice) {
  std::vector<Problem> problems;
  check_options(config, problems);
  const std::vector<Photo> photos = check_pictures(config, advice, problems);
  check_held_out(config, problems);
  const std::optional<model::ModelSurvey> base = check_base(config, photos, problems);
  check_identity(config, photos, problems);
  check_output(config, base, problems);
  return problems;
}

}  // namespace

std::vector<Problem> find_problems(const TrainConfig& config) {
  return problems_of(config, nullptr);
}

std::vector<Problem> find_problems(const TrainConfig& config, Diagnosis& advice) {
  return problems_of(config, &advice);
}

void refuse_problems(const std::vector<Problem>& problems) {
  if (problems.empty()) return;
  const bool only_resume = std::all_of(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.where == "resume_from_checkpoint";
  });
  if (only_resume) throw CheckpointError(problems);
  throw ConfigError(problems);
}

}  // namespace sdtune::train
