// What `sdtune doctor --machine` prints.
#pragma once

#include <string>

#include "model/base/json.h"
#include "model/core/machine_report.h"

namespace sdtune::app {

// A line a fact, the verdict last.
std::string machine_text(const model::MachineReport& report);

// An object with device, fault, warning, gpus (index, name, compute_capability, memory_bytes, fault), hardware,
// container, visible_devices, driver, libtorch, kernels and nccl; null for what is not known.
Json machine_json(const model::MachineReport& report);

}  // namespace sdtune::app
