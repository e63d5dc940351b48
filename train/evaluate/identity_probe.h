// A look at how well the model of a run draws its subjects now: what `eval` measures in earnest, from pictures few
// enough to be drawn again every so many steps, and from the photos alone, without knowing who they show.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/evaluate/eval_prompts.h"
#include "train/evaluate/probe_reader.h"

namespace sdtune::train::evaluate {

struct ProbeSubject {
  std::string words;                      // "sks person"
  std::string class_prompt;               // "a photo of a person"
  std::vector<torch::Tensor> references;  // the photos as the reader takes them, at least one
};

struct ProbePlan {
  std::int64_t subject_pictures = 16;  // of each subject, the prompts in turn
  std::int64_t class_pictures = 8;     // of each class prompt
  std::uint64_t seed = 0;              // of the first picture of each
};

// Means over the subjects.
struct ProbeScores {
  double identity = 0;         // likeness to the photos: 0 like other people, 1 like another of the photos
  double accepted = 0;         // share of the subject's pictures taken for the subject
  double prompt_fidelity = 0;  // share of what the prompts ask that the reader reads back
  double leak = 0;             // share of the class pictures that are taken for the subject

  // What steps are compared by. More likeness than the photos have to each other is no gain: it is a copy.
  double total() const;
};

class IdentityProbe {
 public:
  // Throws WeightError where the reader takes other people for a subject as much as the subject's own photos, and what
  // the reader throws.
  IdentityProbe(std::unique_ptr<ProbeReader> reader, const std::vector<ProbeSubject>& subjects, const ProbePlan& plan);

  // What a look must draw, the same at every look: subject by subject, its pictures before those of its class.
  const std::vector<ProbePicture>& pictures() const { return pictures_; }

  // drawn [pictures().size(), 3, H, W] in [-1, 1], in that order, of a size that the reader takes. A picture is taken
  // for the subject from the reader's threshold on, or, where it has none, from halfway between other people and the
  // photos among themselves.
  ProbeScores score(const torch::Tensor& drawn);

 private:
  struct Anchored {
    torch::Tensor mean_embedding;  // of the photos
    double other = 0;              // mean likeness of other people to it
    double self = 0;               // mean likeness of a photo to the others
    double threshold = 0;          // from which likeness on a picture shows the subject
  };

  static void ask_for(const ProbeSubject& subject, const ProbePlan& plan, std::vector<ProbePicture>& pictures);
  Anchored anchor(const ProbeSubject& subject);

  std::unique_ptr<ProbeReader> reader_;
  ProbePlan plan_;
  std::vector<ProbePicture> pictures_;
  std::vector<Anchored> subjects_;
};

// "a person" of "a photo of a person": what follows the first " of ", or all of it.
std::string class_words_of(const std::string& class_prompt);

}  // namespace sdtune::train::evaluate
