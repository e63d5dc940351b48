// The checks of the base model and of what depends on it.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "model/base/json.h"
#include "model/files/hub_cache.h"
#include "model/files/json_file.h"
#include "model/files/model_note.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/empty_bundle.h"
#include "model/pipeline/image_shape.h"
#include "model/pipeline/model_survey.h"
#include "model/pipeline/prompt_syntax.h"
#include "model/schedule/noise_schedule.h"
#include "model/tokenizer/clip_tokenizer.h"
#include "model/vae/vae_config.h"
#include "train/config/concept_options.h"
#include "train/data/crop_rule.h"
#include "train/objective/zero_terminal_snr.h"
#include "train/parameters/lora_parameters.h"
#include "train/preflight/preflight_checks.h"
#include "train/resume/resume_fingerprint.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

void collect(std::vector<Problem>& problems, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

// What is wrong with one text, under the name of its option or file.
void collect_for(const std::string& name, std::vector<Problem>& problems, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) problems.push_back({name, problem.what, problem.hint});
  }
}

void check_prompt(const ClipTokenizer& tokenizer, const std::string& name, const std::string& prompt,
                  std::vector<Problem>& problems) {
  collect_for(name, problems, [&] {
    const std::int64_t cut = tokenizer(prompt).truncated;
    if (cut == 0) return;
    const std::int64_t most = tokenizer.model_max_length() - 2;  // the start and end tokens take one each
    problems.push_back(
        {name, "is too long (got " + std::to_string(most + cut) + " tokens; allowed: " + std::to_string(most) + ")",
         "the model would not see its end"});
  });
}

// Encoded as `sample` does, so any length will do.
void check_weighted_prompt(const ClipTokenizer& tokenizer, const std::string& name, const std::string& prompt,
                           std::vector<Problem>& problems) {
  collect_for(name, problems, [&] {
    model::parse_weighted_prompt(prompt);
    tokenizer(prompt);
  });
}

void check_caption(const ClipTokenizer& tokenizer, const Photo& photo, std::vector<Problem>& problems) {
  if (photo.has_caption) check_prompt(tokenizer, "caption of " + photo.path.string(), photo.caption, problems);
}

void check_prompts(const TrainConfig& config, const std::vector<Photo>& photos, const std::vector<Photo>& held_out,
                   const ClipTokenizer& tokenizer, std::vector<Problem>& problems) {
  const DataOptions& data = config.data;
  const ObserveOptions& observe = config.observe;
  std::vector<Problem> reported_by_the_images;
  for (const ConceptOptions& subject : concepts_of(data, reported_by_the_images)) {
    check_prompt(tokenizer, "instance_prompt", subject.instance_prompt, problems);
    if (data.with_prior_preservation) check_prompt(tokenizer, "class_prompt", subject.class_prompt, problems);
  }
  if (!observe.validation_prompt.empty()) {
    check_weighted_prompt(tokenizer, "validation_prompt", observe.validation_prompt, problems);
    check_weighted_prompt(tokenizer, "validation_negative_prompt", observe.validation_negative_prompt, problems);
  }
  if (config.identity.identity_steps) collect_for("trigger_word", problems, [&] { tokenizer(data.trigger_word); });
  for (const Photo& photo : photos) {
    check_caption(tokenizer, photo, problems);
    if (photo.auto_caption.empty()) continue;
    check_prompt(tokenizer, "automatic caption of " + photo.path.string(), photo.auto_caption, problems);
  }
  if (resumes_by_name(config)) return;
  for (const Photo& photo : held_out) check_caption(tokenizer, photo, problems);
}

// Parts that do not fit each other, with the lines that load_bundle refuses them with. A part that cannot be read at
// all may have been named by the survey already. Unset where the model cannot be made.
std::optional<model::BundleConfigs> check_fit(const fs::path& base, std::vector<Problem>& problems) {
  std::optional<model::BundleConfigs> configs;
  std::vector<Problem> found;
  collect(found, [&] {
    configs = model::BundleConfigs::read(base);
    found = configs->find_misfits(base);
  });
  append(problems, found);
  if (!found.empty()) configs.reset();
  return configs;
}

void check_resolution(const TrainConfig& config, const fs::path& base, std::vector<Problem>& problems) {
  const fs::path file = base / "vae" / "config.json";
  const std::int64_t factor = model::VaeConfig::from_json(read_json(file), file.string()).downscale();
  const auto check = [&](const char* option, const std::optional<std::int64_t>& value) {
    if (!value || *value % factor == 0) return;
    problems.push_back({option,
                        "must be a multiple of the VAE's downscaling (got " + std::to_string(*value) +
                            "; allowed: multiples of " + std::to_string(factor) + ")",
                        ""});
  };
  check("resolution", config.data.resolution);
  if (config.data.enable_bucket) check("bucket_reso_steps", config.data.bucket_reso_steps);
}

// Whether any bucket is left between the options; a photo as large as can be shows it.
void check_buckets(const TrainConfig& config, const fs::path& base, std::vector<Problem>& problems) {
  if (!config.data.enable_bucket) return;
  const model::ImageShape shape = model::read_image_shape(base);
  const std::int64_t resolution = config.data.resolution.value_or(shape.resolution);
  collect(problems,
          [&] { plan_crop(8 * resolution, 8 * resolution, crop_rule_of(config.data, resolution, shape.step)); });
}

void check_trained_layers(const TrainConfig& config, const model::ModelBundle& bundle) {
  const RunOptions& run = config.run;
  if (run.method == "lora") {
    if (!run.trainable_layers.empty())
      throw ConfigError("trainable_layers", "is for method full (got method lora)", "a LoRA's layers: lora_layers");
    const std::vector<model::LoraLayer> layers = selected_lora_layers(bundle, config.lora, run.train_text_encoder);
    const bool trains_unet = std::any_of(layers.begin(), layers.end(),
                                         [](const model::LoraLayer& layer) { return layer.path.starts_with("unet."); });
    if (!trains_unet && config.optim.train_text_encoder_frac < 1) {
      throw ConfigError(
          "train_text_encoder_frac",
          "leaves nothing to train behind that share of the steps: lora_layers selects no layer of the UNet",
          "allowed then: 1; or add layers, for example to_q");
    }
  } else {
    trainable_parameters(bundle, run.train_text_encoder, run.trainable_layers);
  }
}

void check_scheduler(const TrainConfig& config, const fs::path& base, const std::string& class_name,
                     std::vector<Problem>& problems) {
  const fs::path file = base / "scheduler" / "scheduler_config.json";
  const Json scheduler = read_json(file);
  model::require_known_scheduler(base, class_name, scheduler);
  const auto timesteps = model::NoiseSchedule::from_config(scheduler, file.string()).num_train_timesteps();
  const std::vector<Problem> found = timestep_problems(config.objective, timesteps);
  problems.insert(problems.end(), found.begin(), found.end());
  const std::vector<Problem> rescaling = zero_snr_problems(config.objective, scheduler);
  problems.insert(problems.end(), rescaling.begin(), rescaling.end());
}

// A VAE or text encoder whose config is refused was named by the survey already: the checks that need it say no more.
void check_if_readable(const std::function<void()>& check) {
  try {
    check();
  } catch (const WeightError&) {
  }
}

}  // namespace

std::optional<model::ModelSurvey> check_base(const TrainConfig& config, const std::vector<Photo>& photos,
                                             const std::vector<Photo>& held_out, std::vector<Problem>& problems) {
  if (config.run.base.empty()) {
    problems.push_back({"base", "is not given, and this installation has no bundled base",
                        "name a Stable Diffusion folder: --base DIR; docs/weights.md says where to get one"});
    return {};
  }
  std::optional<model::ModelSurvey> survey;
  collect(problems, [&] {
    const fs::path base = find_model_folder(config.run.base);
    survey = model::survey_model(base);
    problems.insert(problems.end(), survey->problems.begin(), survey->problems.end());
    collect(problems, [&] { read_model_note(base); });
    collect(problems, [&] { files_of_base(base); });
    check_if_readable([&] { check_resolution(config, base, problems); });
    check_if_readable([&] { check_buckets(config, base, problems); });
    collect(problems, [&] { check_scheduler(config, base, survey->scheduler_class, problems); });
    collect(problems,
            [&] { check_prompts(config, photos, held_out, ClipTokenizer::from_folder(base / "tokenizer"), problems); });
    std::optional<model::BundleConfigs> configs = check_fit(base, problems);
    if (!configs || !survey->problems.empty()) return;
    const model::ModelBundle bundle = model::empty_bundle(std::move(*configs), base);
    collect(problems, [&] { check_trained_layers(config, bundle); });
    check_generation(config, bundle, problems);
  });
  return survey;
}

}  // namespace sdtune::train
