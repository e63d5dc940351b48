#include "train/plan/drawings.h"

#include <algorithm>

#include "train/data/concept_options.h"
#include "train/run/identity_reader.h"

namespace sdtune::train {
namespace {

constexpr const char* kClass = "drawing class pictures";
constexpr const char* kValidation = "drawing validation pictures";
constexpr const char* kLikeness = "drawing for looks at likeness";

// One before the first step, one every so many, and one after the last.
std::int64_t looks(std::int64_t total_steps, std::int64_t every) {
  return 1 + (total_steps + every - 1) / every;
}

std::int64_t pictures_of_a_look(const TrainConfig& config) {
  const auto subjects = static_cast<std::int64_t>(std::max<std::size_t>(1, config.data.concepts.size()));
  return subjects * (config.identity.num_identity_images + config.identity.num_class_images());
}

}  // namespace

std::vector<Drawing> drawings_of(const TrainConfig& config) {
  std::vector<Drawing> drawings;
  if (config.data.with_prior_preservation) {
    const std::int64_t batch = config.data.sample_batch_size;
    drawings.push_back({.phase = kClass,
                        .at_once = batch,
                        .rows = config.data.guides_class_pictures() ? 2 * batch : batch,
                        .steps = config.data.class_num_inference_steps});
  }
  if (!config.observe.validation_prompt.empty()) {  // one picture after the other
    const bool guided = config.observe.validation_guidance_scale > 1;
    drawings.push_back({.phase = kValidation,
                        .in_training = true,
                        .at_once = 1,
                        .rows = guided ? 2 : 1,
                        .steps = config.observe.validation_inference_steps});
  }
  if (config.identity.identity_steps) {
    const std::int64_t batch = std::min(kLookBatch, pictures_of_a_look(config));
    drawings.push_back({.phase = kLikeness,
                        .in_training = true,
                        .with_base = !config.identity.identity_model.empty(),
                        .at_once = batch,
                        .rows = 2 * batch,
                        .steps = config.identity.identity_inference_steps});
  }
  return drawings;
}

std::int64_t count_drawn(const Drawing& drawing, const TrainConfig& config, std::int64_t class_images,
                         std::int64_t total_steps) {
  if (drawing.phase == kClass) return class_images;
  if (drawing.phase == kValidation) {
    return looks(total_steps, config.observe.validation_steps) * config.observe.num_validation_images;
  }
  return looks(total_steps, *config.identity.identity_steps) * pictures_of_a_look(config);
}

}  // namespace sdtune::train
