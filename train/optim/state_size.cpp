#include "train/optim/state_size.h"

#include <functional>
#include <numeric>
#include <string>

#include "train/optim/adamw_8bit.h"
#include "train/optim/adamw_8bit_kernel.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kFloat = 4;

std::int64_t count_of(c10::IntArrayRef shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// A code for each number of both moments, and a scale for each block.
std::int64_t adamw_8bit_bytes(std::int64_t count) {
  if (count < AdamW8bit::kLeastNumbers) return 2 * kFloat * count;
  const std::int64_t blocks = (count + kScaledBlock - 1) / kScaledBlock;
  return 2 * blocks * (kScaledBlock + kFloat);
}

// Means over rows and over columns of the last two dimensions; a vector's numbers have one each.
std::int64_t adafactor_bytes(c10::IntArrayRef shape) {
  const std::int64_t count = count_of(shape);
  if (shape.size() < 2) return kFloat * count;
  return kFloat * (count / shape[shape.size() - 1] + count / shape[shape.size() - 2]);
}

}  // namespace

std::int64_t optimizer_state_bytes(const OptimOptions& options, c10::IntArrayRef shape) {
  const std::string name = options.chosen_optimizer();
  const std::int64_t count = count_of(shape);
  if (name == "adamw_8bit") return adamw_8bit_bytes(count);
  if (name == "adafactor") return adafactor_bytes(shape);
  if (name == "lion") return kFloat * count;
  if (name == "prodigy") return 4 * kFloat * count;  // both moments, s, and where it started
  return 2 * kFloat * count;
}

std::int64_t saved_bytes(const OptimOptions& options, c10::IntArrayRef shape) {
  const std::int64_t weights = kFloat * count_of(shape);
  return (options.use_ema ? 2 * weights : weights) + optimizer_state_bytes(options, shape);
}

}  // namespace sdtune::train
