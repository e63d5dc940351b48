#include "train/precision/compute_weight.h"

#include <ATen/core/grad_mode.h>

#include "model/core/device.h"

namespace sdtune::train {

void to_compute_dtype(const torch::Tensor& weight, torch::Dtype dtype, torch::Device device) {
  const torch::NoGradGuard no_grad;
  const bool is_convolution = weight.dim() == 4;
  const torch::Tensor cast = weight.detach().to(dtype);
  weight.set_data(is_convolution ? cast.contiguous(model::fast_memory_format(device, dtype)) : cast);
}

}  // namespace sdtune::train
