// One thing that is trained from nothing: what its parameters are, and what is minimised. StageLoop does the rest.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "train/dist/gradient_buckets.h"

namespace sdtune::train::pretrain {

// A signal or the deadline came while a step waited for what it is trained on. It has changed nothing.
class WaitEnded : public std::exception {
 public:
  const char* what() const noexcept override { return "the wait for images was ended"; }
};

class Stage {
 public:
  virtual ~Stage() = default;
  // "vae": its folder under the output, and its name in progress lines.
  virtual std::string name() const = 0;
  // In the order that forward uses them, float32 on the device of training.
  virtual std::vector<NamedParameter> parameters() const = 0;
  // Images a step.
  virtual std::int64_t batch_size() const = 0;
  // The mean loss of step `step` (0-based), scalar, with gradients: a function of the weights, the seed and the step.
  // Throws WaitEnded where the limits of the run end its wait.
  virtual torch::Tensor loss(std::uint64_t step) = 0;
};

}  // namespace sdtune::train::pretrain
