// The GPU part of `sdtune doctor --machine`.
#pragma once

#include <vector>

#include "model/machine/machine_report.h"

namespace sdtune::model {

// GPUs, driver, LibTorch, kernels, NCCL and, last, what --device auto takes here. Fails where a GPU is there and cannot
// be used, since `train` and `sample` refuse it, too.
std::vector<MachineCheck> gpu_checks(const MachineReport& report);

}  // namespace sdtune::model
