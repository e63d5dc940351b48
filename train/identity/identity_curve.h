// How likeness went over the steps of a run, and what follows from it: which step was best, and whether the run has
// been on a plateau long enough. No model is in here.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/json.h"
#include "train/identity/identity_evaluator.h"

namespace sdtune::train {

struct IdentityResult {
  std::int64_t step = 0;  // optimizer steps done; 0 is the base
  IdentityScores scores;
};

class IdentityCurve {
 public:
  // `digest` names everything besides the weights that scores depend on: those of another digest cannot be compared.
  explicit IdentityCurve(std::string digest) : digest_(std::move(digest)) {}

  // The results of this digest among the lines of an identity.jsonl. A line that was cut short is none.
  void read(std::string_view lines);
  // A line of identity.jsonl: exam, step, identity, accepted, prompt_fidelity, leak, score.
  Json line_of(const IdentityResult& result) const;

  void add(const IdentityResult& result);
  const std::vector<IdentityResult>& results() const { return results_; }  // by rising step
  bool has(std::int64_t step) const;
  // Of a step that there is a result of.
  const IdentityResult& at(std::int64_t step) const;
  // The step of the highest total, the earliest of equals; the base does not compete. Unset before the first
  // evaluation. With `done` among the results up to that step.
  std::optional<std::int64_t> best(std::int64_t done = std::numeric_limits<std::int64_t>::max()) const;
  bool is_better(const IdentityResult& result) const;
  // Whether the last `patience` results up to step `done` are all of them after the best one.
  bool is_on_plateau(std::int64_t done, std::int64_t patience) const;

 private:
  const IdentityResult* best_until(std::int64_t done) const;

  std::string digest_;
  std::vector<IdentityResult> results_;
};

}  // namespace sdtune::train
