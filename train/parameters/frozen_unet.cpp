#include "train/parameters/frozen_unet.h"

#include <cstddef>
#include <vector>

#include "model/nn/initial_values.h"

namespace sdtune::train {

model::UNet2DConditionModel frozen_copy(const model::UNet2DConditionModel& unet) {
  const model::WithoutInitialValues all_come_from_the_other;
  model::UNet2DConditionModel copy(unet->config());
  copy->eval();
  const std::vector<torch::Tensor> sources = unet->parameters(), targets = copy->parameters();
  TORCH_CHECK(sources.size() == targets.size(), "frozen_copy: another number of weights");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const torch::Tensor source = sources[i].detach();
    targets[i].set_data(sources[i].requires_grad() ? source.clone() : source);
    targets[i].set_requires_grad(false);
  }
  return copy;
}

}  // namespace sdtune::train
