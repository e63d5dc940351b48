// The options of the identity evaluation during training, and of what follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/config/train_option_group.h"

namespace sdtune::train {

struct IdentityOptions {
  std::optional<std::int64_t> identity_steps;  // optimizer steps between evaluations; unset: disabled
  std::int64_t num_identity_images = 16;       // of the subject per evaluation; half as many of its class
  std::int64_t identity_inference_steps = 20;  // of the sampler
  std::string identity_classifier;             // its folder; empty: the installed one
  std::string identity_model;  // a face recognition network (.onnx) instead of the classifier; empty: none
  bool keep_best = true;
  std::optional<std::int64_t> early_stop_patience;  // evaluations; unset: disabled

  TrainFieldList fields();
  std::int64_t num_class_images() const { return (num_identity_images + 1) / 2; }
};

}  // namespace sdtune::train
