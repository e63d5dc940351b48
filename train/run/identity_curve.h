// How likeness went over the steps of a run, and what follows from it: which step was best, and whether the run has
// been on a plateau long enough. No model is in here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/json.h"
#include "train/evaluate/identity_probe.h"

namespace sdtune::train {

struct IdentityLook {
  std::int64_t step = 0;  // optimizer steps done; 0 is the base
  evaluate::ProbeScores scores;
};

class IdentityCurve {
 public:
  // `exam` names everything besides the weights that scores depend on: those of another exam cannot be compared.
  explicit IdentityCurve(std::string exam) : exam_(std::move(exam)) {}

  // The looks of this exam among the lines of an identity.jsonl. A line that was cut short is none.
  void read(std::string_view lines);
  // A line of identity.jsonl: exam, step, identity, accepted, prompt_fidelity, leak, score.
  Json line_of(const IdentityLook& look) const;

  void add(const IdentityLook& look);
  const std::vector<IdentityLook>& looks() const { return looks_; }  // by rising step
  bool has(std::int64_t step) const;
  // The step of the highest total, the earliest of equals; the base does not compete. Unset before the first look.
  std::optional<std::int64_t> best() const;
  bool is_better(const IdentityLook& look) const;
  // Whether the last `patience` looks up to step `done` are all of them after the best one.
  bool is_on_plateau(std::int64_t done, std::int64_t patience) const;

 private:
  const IdentityLook* best_until(std::int64_t done) const;

  std::string exam_;
  std::vector<IdentityLook> looks_;
};

}  // namespace sdtune::train
