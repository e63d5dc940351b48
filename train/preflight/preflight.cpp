#include "train/preflight/preflight.h"

#include <set>
#include <string>

#include "train/preflight/preflight_checks.h"

namespace sdtune::train {
namespace {

// Two checks may meet the same fault: that of the photos and that of the base with a bucket that is not there.
void drop_repeated(std::vector<Problem>& problems) {
  std::set<std::string> said;
  std::erase_if(problems, [&](const Problem& problem) { return !said.insert(problem.line()).second; });
}

}  // namespace

Preflight run_preflight(const TrainConfig& config, const PortraitReaderSource& portrait_readers, PhotoUse use) {
  Preflight result;
  std::vector<Problem>& problems = result.problems;
  check_options(config, problems);
  result.photos = check_photos(config, portrait_readers, use, problems);
  const std::vector<Photo>& photos = result.photos.folder.photos;
  result.held_out = check_held_out(config, use, photos, problems);
  check_class_images(config, problems);
  const std::optional<model::ModelSurvey> base = check_base(config, photos, result.held_out.folder.photos, problems);
  check_identity(config, portrait_readers, photos, problems);
  check_output(config, base, problems);
  result.resume = check_resume(config, base, photos, problems);
  check_warm_up(config, result.photos.folder, result.resume, problems);
  drop_repeated(problems);
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
