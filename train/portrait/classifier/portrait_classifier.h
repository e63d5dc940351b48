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
  torch::Tensor numbers;        // [B, number_count(detail)]
  torch::Tensor features;       // [B, kFeatures], what all is read from: the space of the Frechet distance
  torch::Tensor embedding;      // [B, kEmbeddingSize]
  torch::Tensor landmarks;      // [B, landmark_count(detail), 2]: x to the right, y down, an image spans [-1, 1]
  torch::Tensor landmark_seen;  // [B, landmark_count(detail)], probability that it can be seen

  torch::Tensor classes(Head head) const;  // [B] int64, the most probable
};

// images [B, 3, H, W] in [-1, 1] to squares of `side` px, bicubic, antialiased where they shrink.
torch::Tensor resized_images(const torch::Tensor& images, std::int64_t side);

class PortraitClassifier {
 public:
  // The network as it is trained, without a copy.
  PortraitClassifier(ClassifierNetwork network, ClassifierFigures figures);
  // classifier.safetensors and classifier.json of `folder`. Throws WeightError: see classifier_file.h.
  static PortraitClassifier load(const std::filesystem::path& folder, torch::Device device);

  // images [B, 3, H, W] in [-1, 1], any device and float type; of another size than the classifier's they are resized
  // (bicubic, antialiased).
  Reading read(const torch::Tensor& images);

  const ClassifierDesign& design() const { return network_->design(); }

  const ClassifierFigures& figures() const { return figures_; }

 private:
  ClassifierNetwork network_;
  ClassifierFigures figures_;
};

}  // namespace sdtune::train::classifier
