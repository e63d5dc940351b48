#include "train/prepare/generation_summary.h"

#include "train/config/concept_options.h"
#include "train/data/class_image_sets.h"

namespace sdtune::train {

std::vector<std::string> generation_summary(const TrainConfig& config) {
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  std::vector<std::string> lines;
  if (config.data.with_prior_preservation) {
    lines.push_back(text(class_image_count(concepts_of(config.data))) + " class images of " +
                    text(config.data.class_num_inference_steps) +
                    " steps, before training; those found in class_data_dir are not generated again");
  }
  const ObserveOptions& observe = config.observe;
  if (!observe.validation_prompt.empty()) {
    lines.push_back(text(observe.num_validation_images) + " validation images of " +
                    text(observe.validation_inference_steps) + " steps, every " + text(observe.validation_steps) +
                    " optimizer steps");
  }
  const IdentityOptions& identity = config.identity;
  if (identity.identity_steps) {
    lines.push_back(text(identity.num_identity_images) + " images of each subject and " +
                    text(identity.num_class_images()) + " of its class, of " + text(identity.identity_inference_steps) +
                    " steps, every " + text(*identity.identity_steps) + " optimizer steps (identity evaluation)");
  }
  return lines;
}

}  // namespace sdtune::train
