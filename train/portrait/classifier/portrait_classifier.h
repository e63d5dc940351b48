// A trained classifier, ready to read images.
#pragma once

#include <torch/types.h>

#include <filesystem>

#include "train/portrait/classifier/classifier_figures.h"
#include "train/portrait/classifier/classifier_heads.h"
#include "train/portrait/classifier/classifier_network.h"

namespace sdtune::train::classifier {

// What the classifier says of B images; float32 on the CPU.
struct Reading {
  torch::Tensor probabilities;  // [B, column_count()], a distribution for each head
  torch::Tensor numbers;        // [B, kNumberNames.size()]
  torch::Tensor features;       // [B, kFeatures], what all is read from: the space of the Frechet distance
  torch::Tensor embedding;      // [B, kEmbeddingSize]

  torch::Tensor classes(Head head) const;  // [B] int64, the most probable
};

class PortraitClassifier {
 public:
  // The network as it is trained, without a copy.
  PortraitClassifier(ClassifierNetwork network, ClassifierFigures figures);
  // classifier.safetensors and classifier.json of `folder`. Throws WeightError: see classifier_file.h.
  static PortraitClassifier load(const std::filesystem::path& folder, torch::Device device);

  // images [B, 3, 64, 64] in [-1, 1], any device and float type.
  Reading read(const torch::Tensor& images);

  const ClassifierFigures& figures() const { return figures_; }

 private:
  ClassifierNetwork network_;
  ClassifierFigures figures_;
};

}  // namespace sdtune::train::classifier
