#include "train/objective/error_measure.h"

#include <string>
#include <vector>

namespace sdtune::train {

torch::Tensor huber_widths(const ObjectiveOptions& options, const model::NoiseSchedule& schedule,
                           const torch::Tensor& timesteps) {
  const double c = options.huber_c;
  if (options.huber_schedule == "exponential") {
    const torch::Tensor share = timesteps.to(torch::kFloat32) / static_cast<double>(schedule.num_train_timesteps());
    return torch::pow(c, share);
  }
  if (options.huber_schedule == "snr") {
    const torch::Tensor sigma = schedule.snr(timesteps).rsqrt();  // infinite at zero terminal SNR, where c is left
    return (1 - c) / (1 + sigma).square() + c;
  }
  TORCH_CHECK(options.huber_schedule == "constant", "huber_schedule ", options.huber_schedule);
  return torch::full(timesteps.sizes(), c, timesteps.options().dtype(torch::kFloat32));
}

torch::Tensor element_errors(const std::string& loss_type, const torch::Tensor& difference,
                             const torch::Tensor& widths) {
  if (loss_type == "l2") return difference.square();
  std::vector<std::int64_t> shape(static_cast<std::size_t>(difference.dim()), 1);
  shape[0] = difference.size(0);
  const torch::Tensor c = widths.reshape(shape);
  const torch::Tensor beyond = (difference.square() + c.square()).sqrt() - c;
  TORCH_CHECK(loss_type == "huber" || loss_type == "smooth_l1", "loss_type ", loss_type);
  return loss_type == "huber" ? 2 * c * beyond : 2 * beyond;
}

}  // namespace sdtune::train
