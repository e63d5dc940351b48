// The checks of the base model and of what depends on it.
#include <functional>

#include "model/base/clip_tokenizer.h"
#include "model/base/hub_cache.h"
#include "model/base/json.h"
#include "model/clip/clip_text_config.h"
#include "model/pipeline/empty_bundle.h"
#include "model/pipeline/model_survey.h"
#include "model/pipeline/prompt_syntax.h"
#include "model/schedule/noise_schedule.h"
#include "model/schedule/scheduler.h"
#include "model/vae/vae_config.h"
#include "train/data/concept_options.h"
#include "train/data/crop_rule.h"
#include "train/run/lora_method.h"
#include "train/run/picture_shape.h"
#include "train/run/preflight_checks.h"
#include "train/run/zero_terminal_snr.h"

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

void check_prompt(const ClipTokenizer& tokenizer, const std::string& name, const std::string& prompt,
                  std::vector<Problem>& problems) {
  const std::int64_t cut = tokenizer(prompt).truncated;
  if (cut == 0) return;
  const std::int64_t most = tokenizer.model_max_length() - 2;  // the start and end tokens take one each
  problems.push_back(
      {name, "is too long (got " + std::to_string(most + cut) + " tokens; allowed: " + std::to_string(most) + ")",
       "the model would not see its end"});
}

// Drawn as `sample` draws it, so any length will do.
void check_weighted_prompt(const std::string& name, const std::string& prompt, std::vector<Problem>& problems) {
  try {
    model::parse_weighted_prompt(prompt);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems.push_back({name, problem.what, problem.hint});
  }
}

void check_prompts(const TrainConfig& config, const std::vector<Photo>& photos, const ClipTokenizer& tokenizer,
                   std::vector<Problem>& problems) {
  const DataOptions& data = config.data;
  const ObserveOptions& observe = config.observe;
  std::vector<Problem> reported_by_the_pictures;
  for (const ConceptOptions& subject : concepts_of(data, reported_by_the_pictures)) {
    check_prompt(tokenizer, "instance_prompt", subject.instance_prompt, problems);
    if (data.with_prior_preservation) check_prompt(tokenizer, "class_prompt", subject.class_prompt, problems);
  }
  if (!observe.validation_prompt.empty()) {
    check_weighted_prompt("validation_prompt", observe.validation_prompt, problems);
    check_weighted_prompt("validation_negative_prompt", observe.validation_negative_prompt, problems);
  }
  for (const Photo& photo : photos) {
    if (photo.has_caption) check_prompt(tokenizer, "caption of " + photo.path.string(), photo.caption, problems);
  }
}

// One tokenizer and the text encoder it feeds.
ClipTokenizer check_tokenizer(const fs::path& base, const std::string& suffix, std::vector<Problem>& problems) {
  const fs::path folder = base / ("tokenizer" + suffix);
  ClipTokenizer tokenizer = ClipTokenizer::from_folder(folder);
  const fs::path config = base / ("text_encoder" + suffix) / "config.json";
  const model::ClipTextConfig text = model::ClipTextConfig::from_json(read_json(config), config.string());
  if (tokenizer.vocab_size() > text.vocab_size) {
    problems.push_back({folder.string(),
                        "does not belong to the text encoder (got " + std::to_string(tokenizer.vocab_size()) +
                            " tokens; allowed: " + std::to_string(text.vocab_size) + ")",
                        ""});
  }
  return tokenizer;
}

void check_resolution(const TrainConfig& config, const fs::path& base, std::vector<Problem>& problems) {
  const fs::path file = base / "vae" / "config.json";
  const std::int64_t factor = model::VaeConfig::from_json(read_json(file), file.string()).downscale();
  const auto check = [&](const char* option, const std::optional<std::int64_t>& value) {
    if (!value || *value % factor == 0) return;
    problems.push_back({option,
                        "does not suit the VAE (got " + std::to_string(*value) + "; allowed: multiples of " +
                            std::to_string(factor) + ")",
                        ""});
  };
  check("resolution", config.data.resolution);
  if (config.data.enable_bucket) check("bucket_reso_steps", config.data.bucket_reso_steps);
}

// Whether any bucket is left between the options; a photo as large as can be shows it.
void check_buckets(const TrainConfig& config, const fs::path& base, std::vector<Problem>& problems) {
  if (!config.data.enable_bucket) return;
  const PictureShape shape = picture_shape(base);
  const std::int64_t resolution = config.data.resolution.value_or(shape.resolution);
  collect(problems,
          [&] { plan_crop(8 * resolution, 8 * resolution, crop_rule_of(config.data, resolution, shape.step)); });
}

void check_scheduler(const TrainConfig& config, const fs::path& base, const std::string& class_name,
                     std::vector<Problem>& problems) {
  const fs::path file = base / "scheduler" / "scheduler_config.json";
  const Json scheduler = read_json(file);
  model::make_scheduler(class_name, scheduler, file.string());
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
                                             std::vector<Problem>& problems) {
  if (config.run.base.empty()) {
    problems.push_back({"base", "is not given, and this installation has no embedded base",
                        "name a Stable Diffusion folder: --base DIR; docs/weights.md says where to get one"});
    return {};
  }
  std::optional<model::ModelSurvey> survey;
  collect(problems, [&] {
    const fs::path base = find_model_folder(config.run.base);
    survey = model::survey_model(base);
    problems.insert(problems.end(), survey->problems.begin(), survey->problems.end());
    check_if_readable([&] { check_resolution(config, base, problems); });
    check_if_readable([&] { check_buckets(config, base, problems); });
    collect(problems, [&] { check_scheduler(config, base, survey->scheduler_class, problems); });
    collect(problems, [&] { check_prompts(config, photos, check_tokenizer(base, "", problems), problems); });
    if (config.run.method == "lora" && survey->problems.empty()) {
      collect(problems, [&] {
        selected_lora_layers(model::empty_bundle(model::BundleConfigs::read(base), base), config.lora,
                             config.run.train_text_encoder);
      });
    }
    if (survey->pipeline_class == "StableDiffusionXLPipeline") {
      collect(problems, [&] { check_tokenizer(base, "_2", problems); });
    }
  });
  return survey;
}

}  // namespace sdtune::train
