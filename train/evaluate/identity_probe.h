// A look at how well the model of a run draws its subjects now: what `eval` measures in earnest, from pictures few
// enough to be drawn again every so many steps, and from the photos alone, without knowing who they show.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "train/evaluate/eval_prompts.h"
#include "train/judge/judge.h"

namespace sdtune::train::evaluate {

struct ProbeSubject {
  std::string words;         // "sks person"
  std::string class_prompt;  // "a photo of a person"
  torch::Tensor references;  // [R, 3, 64, 64] in [-1, 1]: the photos, R >= 1
};

struct ProbePlan {
  std::int64_t subject_pictures = 16;  // of each subject, the prompts in turn
  std::int64_t class_pictures = 8;     // of each class prompt
  std::uint64_t seed = 0;              // of the first picture of each
};

struct ProbePicture {
  std::string prompt;
  std::uint64_t seed = 0;
};

// Means over the subjects.
struct ProbeScores {
  double identity = 0;         // likeness to the photos: 0 like other people, 1 like another of the photos
  double accepted = 0;         // share of the subject's pictures at the judge's threshold for 1 % impostors
  double prompt_fidelity = 0;  // share of what the prompts ask that the judge reads back
  double leak = 0;             // share of the class pictures that are accepted as the subject

  // What steps are compared by. More likeness than the photos have to each other is no gain: it is a copy.
  double total() const;
};

class IdentityProbe {
 public:
  // Throws WeightError where the judge takes other people for a subject as much as the subject's own photos.
  IdentityProbe(judge::Judge judge, const std::vector<ProbeSubject>& subjects, const ProbePlan& plan);

  // What a look must draw, the same at every look: subject by subject, its pictures before those of its class.
  const std::vector<ProbePicture>& pictures() const { return pictures_; }

  // drawn [pictures().size(), 3, 64, 64] in [-1, 1], in that order.
  ProbeScores score(const torch::Tensor& drawn);

 private:
  struct Anchored {
    torch::Tensor mean_embedding;  // of the photos
    double other = 0;              // mean likeness of other people to it
    double self = 0;               // mean likeness of a photo to the others
  };

  static void ask_for(const ProbeSubject& subject, const ProbePlan& plan, std::vector<ProbePicture>& pictures);
  Anchored anchor(const ProbeSubject& subject, const torch::Tensor& others);

  judge::Judge judge_;
  ProbePlan plan_;
  std::vector<ProbePicture> pictures_;
  std::vector<Anchored> subjects_;
};

}  // namespace sdtune::train::evaluate
