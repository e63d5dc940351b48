// The table of the optimizers' kernels.
#include "train/optim/cuda/launchers.cuh"

namespace {

constexpr sdtune::train::OptimizerTable kTable{
    sdtune::train::kOptimizerTableVersion, sdtune::train::launch_adamw_step,       sdtune::train::launch_adamw,
    sdtune::train::launch_adamw_8bit,      sdtune::train::launch_gradient_squares, sdtune::train::launch_gradient_norm,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const sdtune::train::OptimizerTable* sdtune_optimizer_table() {
  return &kTable;
}
