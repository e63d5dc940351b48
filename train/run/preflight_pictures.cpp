// The check of the photo folder.
#include <utility>

#include "train/data/concept_options.h"
#include "train/data/face_finder.h"
#include "train/data/photo_masks.h"
#include "train/data/photo_set.h"
#include "train/run/photo_report.h"
#include "train/run/preflight_checks.h"

namespace sdtune::train {

namespace {

PhotoFolder read_photos(const TrainConfig& config, const std::vector<ConceptOptions>& concepts, Diagnosis* advice) {
  if (advice == nullptr) return scan_photos(concepts, config.data);
  PhotoReport report = examine_photos(config);
  *advice = std::move(report.diagnosis);
  advice->warnings.insert(advice->warnings.begin(), report.folder.warnings.begin(), report.folder.warnings.end());
  return std::move(report.folder);
}

}  // namespace

void check_held_out(const TrainConfig& config, std::vector<Problem>& problems) {
  const std::string& folder = config.observe.validation_data_dir;
  if (folder.empty()) return;
  try {
    const PhotoFolder found = scan_photos(folder, config.data.instance_prompt, true);
    problems.insert(problems.end(), found.bad.begin(), found.bad.end());
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

std::vector<Photo> check_pictures(const TrainConfig& config, Diagnosis* advice, std::vector<Problem>& problems) {
  const DataOptions& options = config.data;
  if (options.images.empty() && options.concepts.empty()) {
    problems.push_back({"images", "is not given", "name the folder with the photos: --images DIR"});
    return {};
  }
  const std::size_t before = problems.size();
  const std::vector<ConceptOptions> concepts = concepts_of(options, problems);
  if (problems.size() > before) return {};
  try {
    if (!options.face_model.empty()) face_models(options.face_model);
    const std::string& recognizer = config.identity.identity_model;
    if (!recognizer.empty()) check_recognizer(recognizer, options.face_model);
    PhotoFolder photos = read_photos(config, concepts, advice);
    const bool stops = options.on_bad_image == "stop" || photos.photos.empty();
    if (stops) problems.insert(problems.end(), photos.bad.begin(), photos.bad.end());
    if (config.objective.masked_loss) {
      const std::vector<Problem> masks = mask_problems(photos.photos);
      problems.insert(problems.end(), masks.begin(), masks.end());
    }
    return std::move(photos.photos);
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  return {};
}

}  // namespace sdtune::train
