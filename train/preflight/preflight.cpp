#include "train/preflight/preflight.h"

#include "train/preflight/preflight_checks.h"

namespace sdtune::train {

Preflight run_preflight(const TrainConfig& config, const PortraitReaderSource& portrait_readers, PhotoUse use) {
  Preflight result;
  std::vector<Problem>& problems = result.problems;
  check_options(config, problems);
  result.photos = check_photos(config, portrait_readers, use, problems);
  const std::vector<Photo>& photos = result.photos.folder.photos;
  result.held_out = check_held_out(config, use, problems);
  check_class_images(config, problems);
  const std::optional<model::ModelSurvey> base = check_base(config, photos, problems);
  check_identity(config, portrait_readers, photos, problems);
  check_output(config, base, problems);
  result.resume = check_resume(config, base, photos, problems);
  return result;
}

std::vector<Problem> find_problems(const TrainConfig& config, const PortraitReaderSource& portrait_readers) {
  return run_preflight(config, portrait_readers, PhotoUse::kRead).problems;
}

void refuse_problems(const Preflight& preflight) {
  const std::vector<Problem>& problems = preflight.problems;
  if (problems.empty()) return;
  if (problems.size() == preflight.resume.faults.size()) throw CheckpointError(problems);
  throw ConfigError(problems);
}

}  // namespace sdtune::train
