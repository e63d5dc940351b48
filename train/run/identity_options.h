// The options of watching likeness while a run goes on, and of what is made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/base/field.h"

namespace sdtune::train {

struct IdentityOptions {
  std::optional<std::int64_t> identity_steps;  // optimizer steps between two looks; unset: nobody looks
  std::int64_t num_identity_images = 16;       // of the subject at a look; half as many of its class
  std::int64_t identity_inference_steps = 20;  // of the sampler
  std::string identity_judge;                  // its folder; empty: the installed one
  std::string identity_model;                  // a face recognition network (.onnx) instead of the judge; empty: none
  bool keep_best = true;
  std::optional<std::int64_t> early_stop_patience;  // looks; unset: the run goes to its end

  FieldList fields();
  std::int64_t num_class_images() const { return (num_identity_images + 1) / 2; }
};

}  // namespace sdtune::train
