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
  // Of the classifier, and so of the renders: what hides a mark.
  portrait::Detail detail = portrait::Detail::k64;
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
// read, none is there, or one is no render of sdtune and no labels.jsonl says whom it shows.
torch::Tensor photo_references(const std::filesystem::path& folder, std::int64_t side);

struct LabelledSubject {
  std::uint64_t number = 0;  // in the reserved set
  portrait::Detail detail = portrait::Detail::k64;
};

// Which reserved person labels.jsonl in the folder (of `sdtune render`) says the photos show; nothing without that
// file. Throws DataError where it names several people, one who is not reserved, or several details.
std::optional<LabelledSubject> labelled_subject(const std::filesystem::path& folder);

// Throws DataError where the photos of `folder` are of another detail than the classifier reads: the same number is
// another face there.
void check_detail(const LabelledSubject& subject, portrait::Detail read, const std::filesystem::path& folder);

}  // namespace sdtune::train::evaluate
