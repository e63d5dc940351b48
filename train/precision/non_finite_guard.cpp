#include "train/precision/non_finite_guard.h"

#include "model/base/error.h"

namespace sdtune::train {

void NonFiniteGuard::fail(std::int64_t step, const std::string& tensor, const std::filesystem::path& checkpoint) const {
  const std::string where = "step " + std::to_string(step);
  const std::string what = (tensor.empty() ? std::string("the loss") : "the gradient of " + tensor) +
                           " was not finite in " + std::to_string(in_a_row_) + " steps in a row; none was applied";
  const std::string last =
      checkpoint.empty() ? "no checkpoint was written yet" : "last checkpoint " + checkpoint.string();
  throw NonFiniteError(where, what, last + "; a lower learning_rate or mixed_precision bf16 may help");
}

}  // namespace sdtune::train
