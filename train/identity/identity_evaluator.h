// How well the model of a run generates its subjects now: what `eval` measures with many images, from images few
// enough to be generated every so many steps, and from the photos alone, without knowing who they show.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/identity/identity_prompts.h"
#include "train/identity/identity_reader.h"

namespace sdtune::train {

struct IdentitySubject {
  std::string words;                      // "sks person"
  std::string class_prompt;               // "a photo of a person"
  std::vector<torch::Tensor> references;  // the photos as the reader takes them, at least one
};

struct IdentityPlan {
  std::int64_t subject_images = 16;  // of each subject, the prompts in turn
  std::int64_t class_images = 8;     // of each class prompt
  std::uint64_t seed = 0;            // of the first image of each
};

// Means over the subjects.
struct IdentityScores {
  double identity = 0;         // likeness to the photos: 0 like other people, 1 like another of the photos
  double accepted = 0;         // share of the subject's images taken for the subject
  double prompt_fidelity = 0;  // share of what the prompts ask that the reader reads back
  double leak = 0;             // share of the class images that are taken for the subject

  // What steps are compared by. More likeness than the photos have to each other is no gain: it is a copy.
  double total() const;
};

class IdentityEvaluator {
 public:
  // Throws WeightError where the reader takes other people for a subject as much as the subject's own photos, and what
  // the reader throws.
  IdentityEvaluator(std::unique_ptr<IdentityReader> reader, const std::vector<IdentitySubject>& subjects,
                    const IdentityPlan& plan);

  // What must be generated, the same at every evaluation: subject by subject, its images before those of its class.
  const std::vector<IdentityImage>& images() const { return images_; }

  // generated [images().size(), 3, H, W] in [-1, 1], in that order, of a size that the reader takes. An image is taken
  // for the subject from the reader's threshold on, or, where it has none, from halfway between other people and the
  // photos among themselves.
  IdentityScores score(const torch::Tensor& generated);

 private:
  struct Anchored {
    torch::Tensor mean_embedding;  // of the photos
    double other = 0;              // mean likeness of other people to it
    double self = 0;               // mean likeness of a photo to the others
    double threshold = 0;          // from which likeness on an image shows the subject
  };

  static void ask_for(const IdentitySubject& subject, const IdentityPlan& plan, std::vector<IdentityImage>& images);
  Anchored anchor(const IdentitySubject& subject);

  std::unique_ptr<IdentityReader> reader_;
  IdentityPlan plan_;
  std::vector<IdentityImage> images_;
  std::vector<Anchored> subjects_;
};

// "a person" of "a photo of a person": what follows the first " of ", or all of it.
std::string class_words_of(const std::string& class_prompt);

}  // namespace sdtune::train
