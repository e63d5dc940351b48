// The parts of a model that steps do not use, in host memory while there are steps.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

namespace sdtune::train {

class RestingParts {
 public:
  // `parts` are on `device` and move to `resting_place` at once.
  RestingParts(std::vector<std::shared_ptr<torch::nn::Module>> parts, torch::Device device,
               torch::Device resting_place);

  // Back on the device while an object of it lives: generation and encoding need every part.
  class OnDevice {
   public:
    explicit OnDevice(RestingParts* parts);  // null: nothing rests
    ~OnDevice();
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

   private:
    RestingParts* parts_;
  };

 private:
  void move_to(torch::Device place);

  std::vector<std::shared_ptr<torch::nn::Module>> parts_;
  torch::Device device_;
  torch::Device resting_place_;
  int users_ = 0;
};

}  // namespace sdtune::train
