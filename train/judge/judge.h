// A trained judge, ready to read pictures.
#pragma once

#include <torch/types.h>

#include <filesystem>

#include "train/judge/judge_figures.h"
#include "train/judge/judge_heads.h"
#include "train/judge/judge_network.h"

namespace sdtune::train::judge {

// What the judge says of B pictures; float32 on the CPU.
struct Reading {
  torch::Tensor probabilities;  // [B, column_count()], a distribution for each head
  torch::Tensor numbers;        // [B, kNumberNames.size()]
  torch::Tensor features;       // [B, kFeatures], what all is read from: the space of the Frechet distance
  torch::Tensor embedding;      // [B, kEmbeddingSize]

  torch::Tensor classes(Head head) const;  // [B] int64, the most probable
};

class Judge {
 public:
  // The network as it is trained, without a copy.
  Judge(JudgeNetwork network, JudgeFigures figures);
  // judge.safetensors and judge.json of `folder`. Throws WeightError: see judge_file.h.
  static Judge load(const std::filesystem::path& folder, torch::Device device);

  // pictures [B, 3, 64, 64] in [-1, 1], any device and float type.
  Reading read(const torch::Tensor& pictures);

  const JudgeFigures& figures() const { return figures_; }

 private:
  JudgeNetwork network_;
  JudgeFigures figures_;
};

}  // namespace sdtune::train::judge
