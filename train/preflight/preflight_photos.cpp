// The checks of the photo folders.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "train/config/concept_options.h"
#include "train/config/run_folder.h"
#include "train/config/total_steps.h"
#include "train/data/class_images.h"
#include "train/data/face_finder.h"
#include "train/data/photo_masks.h"
#include "train/data/photo_set.h"
#include "train/data/trigger.h"
#include "train/dist/rank_env.h"
#include "train/preflight/photo_report.h"
#include "train/preflight/preflight_checks.h"

namespace sdtune::train {

namespace {

std::string count_of(const std::vector<const Photo*>& some, const std::vector<Photo>& all) {
  return std::to_string(some.size()) + " of " + std::to_string(all.size()) + " photos have no caption";
}

// The subfolder that kohya's trainer takes class images from, "1_person", if there is one with anything in it.
std::optional<std::filesystem::path> class_folder_of_kohya(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code status;
    const bool is_one = kohya_folder(at->path().filename().string()) && at->is_directory(status);
    if (is_one && !std::filesystem::is_empty(at->path(), status)) return at->path();
  }
  return std::nullopt;
}

// Beside class images in a subfolder, as many would be generated without a word.
void check_class_folder(const std::filesystem::path& folder, std::vector<Problem>& problems) {
  if (!own_class_images(folder).empty() || has_generated_class_images(folder)) return;
  const std::optional<std::filesystem::path> inner = class_folder_of_kohya(folder);
  if (!inner) return;
  problems.push_back(
      {"class_data_dir",
       "holds no image, but a subfolder as kohya's trainer has it, which is not read (got " + folder.string() + ")",
       "name the folder of the images itself: " + inner->string()});
}

// A loss by words that were never trained would say nothing of the training.
void check_held_out_prompts(const TrainConfig& config, const std::vector<Photo>& trained,
                            const std::vector<Photo>& held_out, std::vector<Problem>& problems) {
  if (resumes_by_name(config)) return;
  const std::size_t subjects = config.data.concepts.size();
  const bool trains_prompts =
      std::any_of(trained.begin(), trained.end(), [](const Photo& photo) { return !photo.has_caption; });
  std::vector<const Photo*> of_no_subject, untrained;
  for (const Photo& photo : held_out) {
    const bool says_subject = photo.has_caption || photo.name.find('/') != std::string::npos;  // or its folder does
    const bool is_trained =
        photo.has_caption || !trains_prompts ||
        std::any_of(trained.begin(), trained.end(), [&](const Photo& other) { return other.caption == photo.caption; });
    if (photo.caption.find(kTriggerPlace) != std::string::npos || (subjects > 1 && !says_subject)) {
      of_no_subject.push_back(&photo);
    } else if (!is_trained) {
      untrained.push_back(&photo);
    }
  }
  const std::string hint = "write NAME.txt beside each, or put them into a subfolder with their prompt, 1_ohwx man";
  if (!of_no_subject.empty()) {
    problems.push_back({"validation_data_dir",
                        count_of(of_no_subject, held_out) + " that says which of " + std::to_string(subjects) +
                            " subjects they show, the first is " + of_no_subject.front()->path.string(),
                        hint});
  }
  if (!untrained.empty()) {
    problems.push_back({"validation_data_dir",
                        count_of(untrained, held_out) + ", and no photo is trained with the prompt \"" +
                            untrained.front()->caption + "\" that they would have",
                        hint});
  }
}

// Of the same bytes: its loss falls as the model memorizes it, which is what a held-out photo is to show.
void warn_of_trained(const std::vector<Photo>& trained, PhotoFolder& held_out) {
  for (const Photo& photo : held_out.photos) {
    const auto same =
        std::find_if(trained.begin(), trained.end(), [&](const Photo& other) { return other.sha256 == photo.sha256; });
    if (same == trained.end()) continue;
    held_out.warnings.push_back({photo.path.string(), "is trained on too, as " + same->path.string(),
                                 "hold out other photos, or overfitting does not show in the loss"});
  }
}

}  // namespace

PhotoReport check_held_out(const TrainConfig& config, PhotoUse use, const std::vector<Photo>& trained,
                           std::vector<Problem>& problems) {
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
    if (config.data.on_bad_image == "stop" || report.folder.photos.empty()) append(problems, report.folder.bad);
    check_held_out_prompts(config, trained, report.folder.photos, problems);
    warn_of_trained(trained, report.folder);
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
      check_class_folder(subject.class_data_dir, problems);
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

void check_warm_up(const TrainConfig& config, const PhotoFolder& folder, const ResumePoint& resume,
                   std::vector<Problem>& problems) {
  const RunOptions& run = config.run;
  const OptimOptions& optim = config.optim;
  const bool is_partial = !folder.bad.empty() && config.data.on_bad_image == "stop";  // without the photos to be mended
  if (run.max_train_steps || optim.lr_scheduler == "constant" || folder.photos.empty() || is_partial) return;
  if (!resume.checkpoint.empty() || !is_first_rank()) return;
  std::int64_t effective = run.train_batch_size * run.gradient_accumulation_steps, epoch_size = 0;
  try {
    effective *= read_rank_env().world_size;
  } catch (const ConfigError&) {  // check_options says it
    return;
  }
  for (const Photo& photo : folder.photos) epoch_size += photo.repeats;
  const TotalSteps total = total_steps(run, static_cast<std::int64_t>(folder.photos.size()), epoch_size, effective);
  if (optim.lr_warmup_steps <= total.steps) return;
  problems.push_back({"lr_warmup_steps",
                      "is longer than the run (got " + std::to_string(optim.lr_warmup_steps) + "; allowed: at most " +
                          std::to_string(total.steps) + ", the steps by " + total.origin + ")",
                      "give max_train_steps, or a shorter warm-up"});
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
