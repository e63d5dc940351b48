// The whole evaluation of one tuned model on one subject.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "train/identity/model_images.h"
#include "train/portrait/evaluate/scores.h"
#include "train/portrait/evaluate/subject.h"

namespace sdtune::train::evaluate {

struct EvaluationPlan {
  std::int64_t images_per_prompt = 4;               // of the subject, from tuned model and base
  std::int64_t renders_per_prompt = 8;              // of the subject, and of other people
  std::int64_t class_images = 128;                  // of the plain class prompt
  std::int64_t class_images_per_prompt = 2;         // of every class prompt
  std::uint64_t seed = 0;                           // of the first image
  portrait::Detail detail = portrait::Detail::k64;  // of the renders: the classifier's
  std::int64_t side = 64;                           // px, at which the classifier reads
  double accepted_from = 0;  // likeness that 1 % of impostors reach (classifier.json, by_references)
  std::string subject_words = "sks person";
  std::string class_words = "a person";
};

// What generates, what reads, and what is told the progress.
struct EvaluationTools {
  GenerateImages tuned;  // squares
  GenerateImages base;
  std::function<torch::Tensor(const std::vector<portrait::Portrait>& portraits)> render;  // [N, 3, S, S] in [-1, 1]
  std::function<classifier::Reading(const torch::Tensor& images)> read;
  std::function<void(const std::string& what)> on_phase;  // may be empty
  std::string tuned_name = "tuned model";                 // of the two in errors
  std::string base_name = "base";
};

struct EvaluationRow {
  std::string name;
  Scores scores;
};

struct Evaluation {
  // "tuned", then the same figures of what they are to be held against: "renders" of the subject, the untuned "base",
  // and "shuffled", the tuned model's images evaluated against another person.
  std::vector<EvaluationRow> rows;
  double accepted_of_renders = 0;  // accepted: tuned / renders
  double diversity_kept = 0;       // class_diversity: tuned / base
  double class_fidelity_kept = 0;  // class_prompt_fidelity: tuned / base
  torch::Tensor references;        // [R, 3, S, S] in [-1, 1]
  torch::Tensor base_images;       // [prompts, 3, S, S], the first of each prompt
  torch::Tensor tuned_images;      // the same prompts and seeds

  const Scores& row(const std::string& name) const;
};

// `shuffled` is another subject than `subject`. Generates everything, so it takes as long as the images do. Throws
// DataError naming the model whose images hold numbers that are not finite.
Evaluation evaluate(const Subject& subject, const Subject& shuffled, const EvaluationTools& tools,
                    const EvaluationPlan& plan);

}  // namespace sdtune::train::evaluate
