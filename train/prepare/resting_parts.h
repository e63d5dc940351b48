// The parts of a model that steps do not use, in host memory while there are steps.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

namespace sdtune::train {

class RestingParts {
 public:
  // `parts` are on `device` and move to the host at once. Their weights must not be written from then on.
  RestingParts(const std::vector<std::shared_ptr<torch::nn::Module>>& parts, torch::Device device);

  // Back on the device while an object of it lives: generation and encoding need every part. Neither way waits.
  class OnDevice {
   public:
    explicit OnDevice(RestingParts* parts);  // null: nothing rests; where it throws, all parts are on the host again
    ~OnDevice();
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

   private:
    RestingParts* parts_;
  };

 private:
  struct Weight {
    torch::Tensor weight;  // of the module
    torch::Tensor host;    // what it holds, always
  };
  void move_to_device();
  void move_to_host();

  std::vector<Weight> weights_;
  torch::Device device_;
  int users_ = 0;
};

}  // namespace sdtune::train
