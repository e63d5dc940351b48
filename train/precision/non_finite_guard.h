// Ends a run whose loss or gradients stay non-finite, with the place named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sdtune::train {

class NonFiniteGuard {
 public:
  explicit NonFiniteGuard(std::int64_t max_in_a_row) : max_in_a_row_(max_in_a_row) {}

  // Of each finished step, in order: whether its update was discarded.
  void observe(bool skipped) { in_a_row_ = skipped ? in_a_row_ + 1 : 0; }
  bool exhausted() const { return in_a_row_ >= max_in_a_row_; }
  std::int64_t in_a_row() const { return in_a_row_; }

  // Throws NonFiniteError naming the step, the first tensor whose gradient is not finite ("" where it is the loss), and
  // the checkpoint to go back to (empty for none).
  [[noreturn]] void fail(std::int64_t step, const std::string& tensor, const std::filesystem::path& checkpoint) const;

 private:
  std::int64_t max_in_a_row_;
  std::int64_t in_a_row_ = 0;
};

}  // namespace sdtune::train
