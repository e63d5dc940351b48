// The judge of rendered people as the reader of a look: it was trained to read what the prompts ask.
#pragma once

#include "train/evaluate/probe_reader.h"
#include "train/judge/judge.h"

namespace sdtune::train::evaluate {

// All pictures are [.., 3, 64, 64]. Other people are renders of strangers, whatever the class prompt says.
class JudgeReader : public ProbeReader {
 public:
  explicit JudgeReader(judge::Judge judge);

  std::string name() const override { return "judge"; }
  torch::Tensor embed(const std::vector<torch::Tensor>& photos) override;
  torch::Tensor others(const std::string& class_prompt) override;
  ProbeReading read(const torch::Tensor& drawn, const std::vector<ProbePicture>& pictures) override;
  std::optional<double> threshold() const override;

 private:
  judge::Judge judge_;
  torch::Tensor others_;
};

}  // namespace sdtune::train::evaluate
