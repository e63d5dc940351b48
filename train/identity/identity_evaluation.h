// Identity evaluation in one run: generates images, has them read (identity_reader.h), keeps the best weights and the
// curve on disk.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/best_weights.h"
#include "train/dist/shared_failure.h"
#include "train/identity/identity_curve.h"
#include "train/identity/identity_evaluator.h"
#include "train/identity/identity_setup.h"
#include "train/observe/append_file.h"
#include "train/observe/observer.h"

namespace sdtune::train {

class IdentityEvaluation {
 public:
  // Continues the curve of results that identity.jsonl of the run folder already has of this run. Every rank makes one.
  // Throws WeightError for a classifier that cannot be loaded, or a reader that cannot tell the subject from other
  // people, and DataError where a face recognition network sees no face.
  IdentityEvaluation(const IdentityContext& context, const std::vector<Observer*>& observers);

  bool is_due(std::int64_t done) const;
  // Whether an earlier attempt was stopped before the evaluation of that step, or it failed.
  bool lacks(std::int64_t done) const { return is_due(done) && !curve_.has(done); }
  // With the weights that are in the modules now; `weights` are the same in float32, kept in best/ where nothing was
  // better; only the first rank needs them. Each rank generates its share. Nothing happens when any rank was asked to
  // stop meanwhile. Of a step that an earlier attempt evaluated the result is told again: TensorBoard has discarded it
  // with the step. What keeps the step from being evaluated is returned, on every rank, and the curve stays as it was.
  // Throws StorageError.
  std::optional<SharedFailure> evaluate(std::int64_t done, const std::vector<torch::Tensor>& weights);

  // Whether early_stop_patience says that the run ends after `done` steps.
  bool is_over(std::int64_t done) const;

  struct Best {
    std::int64_t step = 0;
    std::vector<torch::Tensor> weights;
  };
  // Unset with keep_best off, before the first evaluation, and, said as a warning, where best/ is gone or damaged.
  std::optional<Best> best();

 private:
  // This rank's images, zero where another rank generates: [count, 3, side, side] on the device.
  torch::Tensor generate_share();
  void keep(std::int64_t done, const IdentityScores& scores, const std::vector<torch::Tensor>& weights);
  void record(const IdentityResult& result);
  void tell_of(const IdentityResult& result);

  IdentityContext context_;
  const std::vector<Observer*>& observers_;
  std::string digest_;
  IdentityEvaluator evaluator_;
  IdentityCurve curve_;
  AppendFile lines_;
};

}  // namespace sdtune::train
