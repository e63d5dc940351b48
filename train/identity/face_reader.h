// A face recognition network as the reader of an evaluation: for any base that generates faces, and any photos.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "train/data/face_finder.h"
#include "train/identity/identity_reader.h"

namespace sdtune::train {

struct FaceReaderOptions {
  std::shared_ptr<FaceFinder> recognizer;         // see start_recognizer
  std::function<model::ModelBundle()> load_base;  // the base as it was before the run; it is let go after each use
  std::int64_t steps = 20;                        // of the sampler, for other people
  const std::atomic<bool>* stop = nullptr;
};

// Likeness is the cosine of the network's vectors of the largest face in each image. Other people are what the base
// generates of the class. Whether an image shows its prompt is the base's answer, too: is the prompt, with the class's
// words for the subject's, likelier than the other prompts of the evaluation (text_likelihood.h)?
class FaceReader : public IdentityReader {
 public:
  explicit FaceReader(FaceReaderOptions options);

  std::string name() const override { return "identity_model"; }
  torch::Tensor embed(const std::vector<torch::Tensor>& photos) override;
  torch::Tensor others(const std::string& class_prompt) override;
  IdentityReading read(const torch::Tensor& images, const std::vector<IdentityImage>& asked) override;
  std::optional<double> threshold() const override { return std::nullopt; }

 private:
  // [D], undefined without a face.
  torch::Tensor embed_one(const torch::Tensor& image);

  FaceReaderOptions options_;
  std::map<std::string, torch::Tensor> others_;  // by class prompt
};

}  // namespace sdtune::train
