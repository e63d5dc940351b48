// The looks at likeness of one run: draws, asks the reader (identity_reader.h), keeps the best weights and the curve on
// disk.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/best_weights.h"
#include "train/evaluate/evaluation.h"
#include "train/evaluate/identity_probe.h"
#include "train/observe/append_file.h"
#include "train/observe/observer.h"
#include "train/run/identity_curve.h"
#include "train/run/run.h"
#include "train/run/train.h"

namespace sdtune::train {

class IdentityWatch {
 public:
  // Goes on with the looks that identity.jsonl of the run folder already has of this run. Every rank makes one. Throws
  // WeightError for a judge that cannot be loaded, or a reader that cannot tell the subject from other people, and
  // DataError where a face recognition network sees no face. `stop` outlives it.
  IdentityWatch(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop);

  bool is_due(std::int64_t done) const;
  // Whether an earlier attempt was stopped before the look of that step.
  bool lacks(std::int64_t done) const { return is_due(done) && !curve_.has(done); }
  // With the weights that are in the modules now; `weights` are the same in float32, kept in best/ where nothing was
  // better. Each rank draws its share. Nothing happens when any rank was asked to stop meanwhile, or when the step was
  // looked at before. Throws StorageError.
  void look(std::int64_t done, const std::vector<torch::Tensor>& weights);

  // Whether early_stop_patience says that the run ends after `done` steps.
  bool is_over(std::int64_t done) const;

  struct Best {
    std::int64_t step = 0;
    std::vector<torch::Tensor> weights;
  };
  // Unset with keep_best off, before the first look, and, said as a warning, where best/ is gone or damaged.
  std::optional<Best> best();

 private:
  torch::Tensor draw();
  void record(const IdentityLook& look);

  Run& run_;
  const std::vector<Observer*>& observers_;
  const StopFlag& stop_;
  std::string exam_;
  evaluate::IdentityProbe probe_;
  IdentityCurve curve_;
  AppendFile lines_;
};

}  // namespace sdtune::train
