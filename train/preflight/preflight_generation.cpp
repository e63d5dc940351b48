// The check of what a run generates before its first step.
#include <algorithm>

#include "model/files/file_system.h"
#include "model/generate/generate_options.h"
#include "model/pipeline/text_to_image.h"
#include "model/schedule/scheduler.h"
#include "train/config/resolve_options.h"
#include "train/data/class_image_sets.h"
#include "train/data/class_images.h"
#include "train/preflight/preflight_checks.h"

namespace sdtune::train {

namespace {

// The folders that the user's own images do not fill.
std::vector<std::filesystem::path> folders_to_fill(const TrainConfig& config, const model::ModelBundle& base) {
  std::vector<std::filesystem::path> folders;
  if (!config.data.with_prior_preservation) return folders;
  TrainConfig resolved = config;
  resolve_options(resolved, {base.resolution(), model::default_guidance_scale(base.is_xl())}, "");
  std::vector<Problem> reported_by_the_images;
  for (const ClassImageSet& set : class_image_sets(concepts_of(resolved.data, reported_by_the_images))) {
    try {
      if (std::ssize(own_class_images(set.folder)) < set.count) folders.push_back(set.folder);
    } catch (const Error&) {
      continue;  // check_class_images says what is wrong with them
    }
  }
  return folders;
}

void check_steps(const model::ModelBundle& base, const std::string& option, std::int64_t steps,
                 std::vector<Problem>& problems) {
  try {
    model::make_sampler(base)->set_timesteps(steps);
  } catch (const Error& error) {
    for (Problem problem : error.problems()) {
      if (problem.where == "num_inference_steps") problem.where = option;
      problems.push_back(problem);
    }
  }
}

}  // namespace

void check_generation(const TrainConfig& config, const model::ModelBundle& base, std::vector<Problem>& problems) {
  const std::vector<std::filesystem::path> folders = folders_to_fill(config, base);
  for (const std::filesystem::path& folder : folders) {
    const bool is_named = is_file(folder);  // by the check of the options
    if (!is_named && !check_writable("class_data_dir", folder, problems)) break;
  }
  if (!folders.empty()) check_steps(base, "class_num_inference_steps", config.data.class_num_inference_steps, problems);
  if (!config.observe.validation_prompt.empty()) {
    check_steps(base, "validation_inference_steps", config.observe.validation_inference_steps, problems);
  }
  if (config.identity.identity_steps) {
    check_steps(base, "identity_inference_steps", config.identity.identity_inference_steps, problems);
  }
}

}  // namespace sdtune::train
