// Work of a run that may fail without ending it: all ranks must agree on whether it did.
#pragma once

#include <exception>
#include <functional>
#include <optional>

#include "model/base/error.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

// What failed, the first of it by rank.
struct SharedFailure {
  ExitCode code = ExitCode::kBug;
  Problem problem;
  std::exception_ptr own;  // null on a rank that did not fail itself

  // As it was thrown, or, where another rank threw it, an Error of the same code and words.
  [[noreturn]] void rethrow() const;
};

// Runs this rank's share of `work`, which calls no operation of the group, waits for all ranks and returns what failed
// on any of them; every rank gets the same answer and must call this. A failure is a WeightError, a DataError, any
// other Error of bad input, an image that is not finite, and memory that ran out. Whatever else is thrown passes: a
// lost peer, a full disk and a bug would be met again in the next step.
std::optional<SharedFailure> run_share(ProcessGroup& group, const std::function<void()>& work);

}  // namespace sdtune::train
