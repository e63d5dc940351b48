// The check of the checkpoint to resume from: whether it is whole, and whether this run is the one that wrote it.
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "model/base/json.h"
#include "model/core/device.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/files/json_file.h"
#include "model/generate/generate_options.h"
#include "model/pipeline/image_shape.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/concept_options.h"
#include "train/config/resolve_options.h"
#include "train/config/run_folder.h"
#include "train/config/total_steps.h"
#include "train/data/class_image_sets.h"
#include "train/data/photo_set.h"
#include "train/dist/rank_env.h"
#include "train/precision/mixed_precision.h"
#include "train/preflight/preflight_checks.h"
#include "train/resume/resume_fingerprint.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

// The options as build_run resolves them, before any model is loaded.
TrainConfig resolved(const TrainConfig& config, const fs::path& base, bool is_xl, const std::vector<Photo>& photos,
                     const ResumePoint& resume) {
  const std::int64_t effective_batch = resume.state.effective_batch;
  TrainConfig run = config;
  run.precision.mixed_precision =
      resolve_mixed_precision(config.precision.mixed_precision, model::find_device(config.run.device, "device"),
                              recorded_value(resume, "mixed_precision"));
  const BaseDefaults defaults = {model::read_image_shape(base).resolution, model::default_guidance_scale(is_xl)};
  resolve_options(run, defaults, recorded_value(resume, "class_guidance_scale"));
  keep_effective_batch(run, read_rank_env().world_size, effective_batch);
  std::int64_t epoch_size = 0;
  for (const Photo& photo : photos) epoch_size += photo.repeats;
  run.run.max_train_steps =
      total_steps(run.run, static_cast<std::int64_t>(photos.size()), epoch_size, effective_batch).steps;
  return run;
}

// The class images that are there. One that is still to be generated will be what it was, and is compared then.
std::vector<ClassImage> class_images_there(const TrainConfig& run, const ClassImageBase& base,
                                           const std::map<std::string, std::string>& saved,
                                           std::map<std::string, std::string>& expected) {
  std::vector<ClassImage> images;
  if (!run.data.with_prior_preservation) return images;
  for (const ClassImageSet& set : class_image_sets(concepts_of(run.data))) {
    const ClassImageSettings settings =
        class_image_settings(set, run.data, static_cast<std::uint64_t>(run.run.seed), base);
    const ClassImagePlan plan = plan_class_images(set.folder, set.count, settings);
    for (std::size_t i = 0, next = 0; i < plan.files.size(); ++i) {
      if (next == plan.missing.size() || plan.missing[next] != static_cast<std::int64_t>(i)) {
        images.push_back({plan.files[i], set.prompt});
        continue;
      }
      ++next;
      for (const std::string& name : class_image_names(plan.files[i], set.prompt)) {
        if (saved.contains(name)) expected.insert(*saved.find(name));
      }
    }
  }
  return images;
}

// Where the curve of the rate depends on the steps, a changed number of them is a changed option already.
void check_steps(const ResumePoint& resume, const TrainConfig& run, const ResumeFingerprint& now,
                 std::vector<Problem>& problems) {
  const std::int64_t wanted = *run.run.max_train_steps, done = resume.state.step;
  if (now.settings.contains("max_train_steps") || done <= wanted) return;
  problems.push_back({"max_train_steps",
                      "is less than the checkpoint has done (got " + std::to_string(wanted) + "; allowed: at least " +
                          std::to_string(done) + ")",
                      "a model of fewer steps is a new run: choose another --output, or an earlier checkpoint"});
}

std::vector<Problem> changes_since(const ResumePoint& resume, const TrainConfig& config,
                                   const model::ModelSurvey& survey, std::vector<Photo> photos,
                                   std::string& base_hash) {
  const fs::path base = find_model_folder(config.run.base);
  const TrainConfig run = resolved(config, base, survey.is_xl(), photos, resume);
  drop_unused_faces(photos, run.data);
  ResumeFingerprint now;
  now.base_hash = base_hash = hash_of_base(base);
  now.settings = fingerprint_settings(run);
  const ClassImageBase generator = {now.base_hash, survey.scheduler_class,
                                    read_json(base / "scheduler" / "scheduler_config.json")};
  std::map<std::string, std::string> expected;
  const std::vector<ClassImage> class_images =
      class_images_there(run, generator, resume.state.fingerprint.images, expected);
  now.images = fingerprint_images(photos, class_images, run.objective.masked_loss);
  now.images.merge(expected);
  std::vector<Problem> problems = fingerprint_changes(completed_fingerprint(resume.state.fingerprint, now), now);
  check_steps(resume, run, now, problems);
  check_precision(run, problems);
  return problems;
}

// Whether the newest attempt in the folder ended by itself, with a model. One that was killed behind its export, or
// lost a rank there, did not: it is started again by a program that means that very run.
bool is_finished(const RunFolder& folder) {
  std::error_code status;
  if (!fs::exists(folder.model(), status)) return false;
  try {
    const Json record = read_json(folder.record());
    const auto attempts = record.find("attempts");
    if (attempts == record.end() || !attempts->is_array() || attempts->empty()) return true;
    const Json& last = attempts->back();
    return !last.is_object() || last.value("exit_code", Json()) == static_cast<int>(ExitCode::kDone);
  } catch (const Error&) {
    return true;  // a model, and nothing that tells whose
  }
}

// The model of a finished run is not replaced unasked, and its hours are not those of another run. It has no checkpoint
// where it was shorter than checkpointing_steps, so nothing tells whether this run is the same.
void check_finished_run(const RunFolder& folder, std::vector<Problem>& problems) {
  if (!is_finished(folder)) return;
  problems.push_back({folder.root.string(), "has a finished run in it, and no checkpoint of it to resume from",
                      "choose another --output; --overwrite without --resume-from-checkpoint deletes it"});
}

// Where a run resumes from a checkpoint that lies elsewhere: one of another run in the output's folder would pass for
// its own, and count as the newest.
void check_other_checkpoints(const ResumePoint& resume, const RunFolder& folder, std::vector<Problem>& problems) {
  const fs::path checkpoints = folder.checkpoints();
  std::error_code status;
  if (fs::equivalent(fs::canonical(resume.checkpoint).parent_path(), checkpoints, status)) return;
  const std::vector<CheckpointFolder> others = list_checkpoints(checkpoints);
  if (others.empty()) check_finished_run(folder, problems);
  for (const CheckpointFolder& there : others) {
    if (!checkpoint_faults(there.path).empty()) continue;  // passed over wherever checkpoints are searched for
    const ResumeFingerprint other = read_run_state(there.path).fingerprint;
    const ResumeFingerprint own = completed_fingerprint(resume.state.fingerprint, other);
    if (fingerprint_changes(completed_fingerprint(other, own), own).empty()) continue;
    problems.push_back({"output", there.path.string() + " is of another run than " + resume.checkpoint.string(),
                        "choose another --output"});
    return;
  }
}

}  // namespace

ResumePoint check_resume(const TrainConfig& config, const std::optional<model::ModelSurvey>& base,
                         const std::vector<Photo>& photos, std::vector<Problem>& problems) {
  ResumePoint resume;
  if (!is_first_rank()) return resume;  // it gets the first rank's
  const RunFolder folder = run_folder(config);
  const std::string& asked = config.checkpoint.resume_from_checkpoint;
  try {
    FoundCheckpoint found = find_checkpoint(asked, folder.checkpoints());
    resume.warnings = std::move(found.warnings);
    if (!found.path) {
      if (!asked.empty()) check_finished_run(folder, problems);  // auto starts fresh
      return resume;
    }
    resume.checkpoint = *found.path;
    resume.state = read_run_state(resume.checkpoint);
    check_other_checkpoints(resume, folder, problems);
  } catch (const CheckpointError& error) {
    resume.faults = error.problems();
    append(problems, resume.faults);
    return resume;
  }
  if (!base || !problems.empty()) return resume;  // with other faults in place, a comparison would only repeat them
  try {
    append(problems, changes_since(resume, config, *base, photos, resume.base_hash));
  } catch (const Error& error) {
    append(problems, error.problems());
  }
  return resume;
}

}  // namespace sdtune::train
