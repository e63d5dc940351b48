#include "train/config/total_steps.h"

#include <algorithm>

namespace sdtune::train {
namespace {

constexpr std::int64_t kStepsPerPhoto = 100;
constexpr std::int64_t kMostStepsByPhotos = 1200;

}  // namespace

TotalSteps total_steps(const RunOptions& options, std::int64_t photos, std::int64_t epoch_size,
                       std::int64_t effective) {
  if (options.max_train_steps) return {*options.max_train_steps, ""};
  if (options.num_train_epochs) {
    return {*options.num_train_epochs * ((epoch_size + effective - 1) / effective), "num_train_epochs"};
  }
  return {std::min(kStepsPerPhoto * photos, kMostStepsByPhotos), "100 a photo, at most 1200"};
}

}  // namespace sdtune::train
