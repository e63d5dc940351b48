// Which of several texts an image shows, as the model that knows the texts sees it: a diffusion model is a classifier
// (Li et al., "Your diffusion model is secretly a zero-shot classifier", ICCV 2023).
#pragma once

#include <torch/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"

namespace sdtune::train {

struct LikelihoodOptions {
  std::int64_t noise_levels = 6;            // each with a noise of its own, the same for all texts and images
  std::uint64_t seed = 0;                   // of the noises
  const std::atomic<bool>* stop = nullptr;  // read between two images
};

// images [B, 3, H, W] in [-1, 1], H and W multiples of what the VAE asks for -> [B, texts] float64 on the CPU: the
// mean squared error of the model's prediction under each text, over noise levels from the middle half of the schedule.
// The smallest in a row is the text that the image shows. Where `stop` asked, the rest is zero.
torch::Tensor text_errors(model::ModelBundle& bundle, const torch::Tensor& images,
                          const std::vector<std::string>& texts, const LikelihoodOptions& options);

}  // namespace sdtune::train
