// How well the base follows prompts, as training proceeds: the classifier reads back what full captions of unseen
// people ask for.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "train/portrait/classifier/portrait_classifier.h"

namespace sdtune::train::pretrain {

// How often something was asked, and how often the classifier read it back.
struct Asked {
  std::int64_t asked = 0;
  std::int64_t right = 0;

  double share() const { return asked > 0 ? static_cast<double>(right) / static_cast<double>(asked) : 0.0; }
};

struct PromptAccuracy {
  std::int64_t images = 0;
  std::map<std::string, std::map<std::string, Asked>> by_class;  // by head and what was asked: glasses, sunglasses
  std::map<std::string, double> by_head;  // share of prompted attributes that the classifier reads back, by head
  double mean = 0;                        // of the heads
};

// One generated image a portrait. Attributes that a caption has no words for (neutral faces, marks) are not asked.
PromptAccuracy prompt_accuracy(const std::vector<portrait::Portrait>& prompted, const classifier::Reading& reading);

// The first `count` unseen people, with captions that leave nothing out.
std::vector<portrait::Portrait> prompted_people(std::int64_t count, portrait::Detail detail);

struct PromptGeneration {
  std::int64_t steps = 20;
  double guidance_scale = 4.0;
};

// One image a caption, seeds from 0: [N, 3, S, S] in [-1, 1].
torch::Tensor generate_prompted(model::ModelBundle& bundle, const std::vector<portrait::Portrait>& prompted,
                                const PromptGeneration& generation);

class PromptCurve {
 public:
  // Appends to curve.jsonl in `folder`. `images` unseen people are prompted, the same ones each time.
  PromptCurve(model::ModelBundle& bundle, classifier::PortraitClassifier& classifier, std::filesystem::path folder,
              std::int64_t images);

  // Generates, reads, and appends a line: step, images, mean, and a share for each head.
  PromptAccuracy evaluate(std::int64_t step);

 private:
  model::ModelBundle& bundle_;
  classifier::PortraitClassifier& classifier_;
  std::filesystem::path folder_;
  std::vector<portrait::Portrait> prompted_;
};

}  // namespace sdtune::train::pretrain
