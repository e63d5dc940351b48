// The classifier of rendered people as the reader of an identity evaluation: it was trained to read what the prompts
// ask.
#pragma once

#include "train/identity/identity_reader.h"
#include "train/portrait/classifier/portrait_classifier.h"

namespace sdtune::train::evaluate {

// All images are [.., 3, 64, 64]. Other people are renders, whatever the class prompt says.
class ClassifierReader : public IdentityReader {
 public:
  explicit ClassifierReader(classifier::PortraitClassifier classifier);

  std::string name() const override { return "judge"; }
  torch::Tensor embed(const std::vector<torch::Tensor>& photos) override;
  std::vector<std::string> describe(const std::vector<torch::Tensor>& photos) override;
  torch::Tensor others(const std::string& class_prompt) override;
  IdentityReading read(const torch::Tensor& drawn, const std::vector<IdentityImage>& images) override;
  std::optional<double> threshold() const override;
  std::optional<double> pair_threshold() const override;

 private:
  classifier::PortraitClassifier classifier_;
  torch::Tensor others_;
};

}  // namespace sdtune::train::evaluate
