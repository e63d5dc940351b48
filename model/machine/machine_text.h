// What `sdtune doctor --machine` prints.
#pragma once

#include <string>

#include "model/base/json.h"
#include "model/machine/machine_report.h"

namespace sdtune::model {

// A line a check, "STATUS NAME WHAT IS THERE", and below it what to do; what --device auto takes last.
std::string machine_text(const MachineReport& report);

// An object with device, fault, warning, gpus (index, name, compute_capability, memory_bytes, fault), hardware,
// container, visible_devices, driver, libtorch, kernels, nccl and checks (name, status: ok, warn or fail, found,
// advice); null for what is not known.
Json machine_json(const MachineReport& report);

}  // namespace sdtune::model
