// The person whose likeness is evaluated.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/portrait/classifier/portrait_classifier.h"

namespace sdtune::train::evaluate {

struct Subject {
  std::uint64_t number = 0;  // in the reserved set
  portrait::Identity who;    // the truth
  torch::Tensor references;  // [R, 3, S, S] in [-1, 1], S the classifier's size: the photos that the model was tuned on
  classifier::Reading reading;   // of the references
  torch::Tensor mean_embedding;  // [kEmbeddingSize] of length 1
};

// Reserved person `number`, known by these images.
Subject make_subject(classifier::PortraitClassifier& classifier, std::uint64_t number, const torch::Tensor& references);

// The first `count` views of a reserved person, as `sdtune render --subject` renders them, in the classifier's size and
// detail.
torch::Tensor rendered_references(const classifier::ClassifierDesign& design, std::uint64_t number, std::int64_t count);

// A folder of photos of any size, each cropped to its middle square of `side` px. Throws DataError where one cannot be
// read or none is there.
torch::Tensor photo_references(const std::filesystem::path& folder, std::int64_t side);

// Which reserved person labels.jsonl in the folder (of `sdtune render`) says the photos show; nothing without that
// file. Throws DataError where it names several people, or one who is not reserved.
std::optional<std::uint64_t> labelled_subject(const std::filesystem::path& folder);

}  // namespace sdtune::train::evaluate
