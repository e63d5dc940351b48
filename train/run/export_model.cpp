#include "train/run/export_model.h"

#include <ATen/core/grad_mode.h>

namespace sdtune::train {

void export_model(FileSystem& files, Run& run) {
  const torch::NoGradGuard no_grad;
  const AdamW& optimizer = *run.optimizer;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    torch::Tensor weight = optimizer.parameters()[i].weight;
    weight.set_data(optimizer.memory()[i].master.detach());
  }
  model::save_bundle(files, run.bundle, run.folder.model(), torch::kFloat32);
}

}  // namespace sdtune::train
