// The checks of the photo folders.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "train/config/concept_options.h"
#include "train/config/run_folder.h"
#include "train/data/class_images.h"
#include "train/data/face_finder.h"
#include "train/data/photo_masks.h"
#include "train/data/photo_set.h"
#include "train/data/trigger.h"
#include "train/preflight/photo_report.h"
#include "train/preflight/preflight_checks.h"

namespace sdtune::train {

PhotoReport check_held_out(const TrainConfig& config, PhotoUse use, std::vector<Problem>& problems) {
  const std::string& folder = config.observe.validation_data_dir;
  if (folder.empty()) return {};
  PhotoReport report;
  try {
    report.rule = crop_rule(config);
    report.rule.random = false;
    PhotoVisitor visitor;
    std::shared_ptr<DecodedPhotos> kept;
    if (use == PhotoUse::kTrain || use == PhotoUse::kPrepare) {
      kept = std::make_shared<DecodedPhotos>(report.rule, photo_filter(config), /*shows_faces=*/false);
      visitor.keep = [&](const Photo& photo, const Image& image) { kept->keep(photo, image); };
    }
    report.folder = scan_held_out(config.data, folder, visitor);
    report.kept = std::move(kept);
    append(problems, report.folder.bad);
  } catch (const Error& error) {
    append(problems, error.problems());
  }
  return report;
}

void check_class_images(const TrainConfig& config, std::vector<Problem>& problems) {
  if (!config.data.with_prior_preservation) return;
  std::vector<Problem> reported_by_the_photos;
  for (const ConceptOptions& subject : concepts_of(config.data, reported_by_the_photos)) {
    try {
      own_class_images(subject.class_data_dir);
    } catch (const Error& error) {
      append(problems, error.problems());
    }
  }
}

// Prompts of the identity evaluation and of the trained model say the word: one that was never trained means nothing,
// and one for several subjects would measure each of them by the same prompts.
void check_trigger_word(const TrainConfig& config, const std::vector<Photo>& photos, std::vector<Problem>& problems) {
  const DataOptions& options = config.data;
  if (options.trigger_word.empty() || photos.empty()) return;
  if (options.concepts.size() > 1 && config.identity.identity_steps) {
    problems.push_back({"trigger_word",
                        "is one word for all subjects, so identity_steps cannot tell the " +
                            std::to_string(options.concepts.size()) + " of concepts apart (got " +
                            options.trigger_word + ")",
                        "leave it out: [trigger] in a caption is then the words of its subject's instance_prompt"});
    return;
  }
  const bool is_said = std::any_of(photos.begin(), photos.end(), [&](const Photo& photo) {
    return says_trigger(photo.caption, options.trigger_word);
  });
  if (is_said) return;
  problems.push_back({"trigger_word",
                      "is said by no photo's caption, nor by instance_prompt (got " + options.trigger_word + ")",
                      "put it, or [trigger], into instance_prompt"});
}

PhotoReport check_photos(const TrainConfig& config, const PortraitReaderSource& readers, PhotoUse use,
                         std::vector<Problem>& problems) {
  const DataOptions& options = config.data;
  if (options.images.empty() && options.concepts.empty()) {
    problems.push_back({"images", "is not given", "name the folder with the photos: --images DIR"});
    return {};
  }
  const std::size_t before = problems.size();
  concepts_of(options, problems);
  if (problems.size() > before) return {};
  try {
    if (!options.face_model.empty()) face_models(options.face_model);
    PhotoReport report = examine_photos(config, readers, use);
    const PhotoFolder& folder = report.folder;
    if (options.on_bad_image == "stop" || folder.photos.empty()) append(problems, folder.bad);
    const std::string& resumed = config.checkpoint.resume_from_checkpoint;  // a run may have begun before this check
    if (resumed.empty() || resumed == "auto") check_trigger_word(config, folder.photos, problems);
    if (config.objective.masked_loss) append(problems, mask_problems(folder.photos));
    return report;
  } catch (const Error& error) {
    append(problems, error.problems());
  }
  return {};
}

}  // namespace sdtune::train
