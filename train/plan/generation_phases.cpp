#include "train/plan/generation_phases.h"

#include <algorithm>

#include "model/generate/generate_options.h"
#include "train/config/concept_options.h"
#include "train/identity/identity_setup.h"

namespace sdtune::train {
namespace {

constexpr const char* kClass = "generating class images";
constexpr const char* kValidation = "generating validation images";
constexpr const char* kIdentity = "generating images for identity evaluation";

// One before the first step, one every so many, and one after the last.
std::int64_t evaluations(std::int64_t total_steps, std::int64_t every) {
  return 1 + (total_steps + every - 1) / every;
}

std::int64_t images_an_evaluation(const TrainConfig& config) {
  const auto subjects = static_cast<std::int64_t>(std::max<std::size_t>(1, config.data.concepts.size()));
  return subjects * (config.identity.num_identity_images + config.identity.num_class_images());
}

}  // namespace

std::vector<Generation> generations_of(const TrainConfig& config) {
  std::vector<Generation> generations;
  if (config.data.with_prior_preservation) {
    const std::int64_t batch = config.data.sample_batch_size;
    const bool guided = config.data.class_guidance_scale.value_or(model::default_guidance_scale(false)) > 1;
    generations.push_back({.phase = kClass,
                           .at_once = batch,
                           .rows = guided ? 2 * batch : batch,
                           .steps = config.data.class_num_inference_steps});
  }
  if (!config.observe.validation_prompt.empty()) {  // one image after the other
    const bool guided = config.observe.validation_guidance_scale.value_or(model::default_guidance_scale(false)) > 1;
    generations.push_back({.phase = kValidation,
                           .in_training = true,
                           .at_once = 1,
                           .rows = guided ? 2 : 1,
                           .steps = config.observe.validation_inference_steps});
  }
  if (config.identity.identity_steps) {
    const std::int64_t batch = std::min(kImagesAtOnce, images_an_evaluation(config));
    generations.push_back({.phase = kIdentity,
                           .in_training = true,
                           .with_base = !config.identity.identity_model.empty(),
                           .at_once = batch,
                           .rows = 2 * batch,
                           .steps = config.identity.identity_inference_steps});
  }
  return generations;
}

std::int64_t count_generated(const Generation& generation, const TrainConfig& config, std::int64_t class_images,
                             std::int64_t total_steps) {
  if (generation.phase == kClass) return class_images;
  if (generation.phase == kValidation) {
    return evaluations(total_steps, config.observe.validation_steps) * config.observe.num_validation_images;
  }
  return evaluations(total_steps, *config.identity.identity_steps) * images_an_evaluation(config);
}

}  // namespace sdtune::train
