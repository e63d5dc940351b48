// The limits of the control groups that this process is in: a container's, a Slurm job's, a systemd unit's.
#pragma once

#include <cstdint>
#include <optional>

#include "model/machine/machine_check.h"

namespace sdtune::model {

// Cores that the smallest quota allows, its own group's or one above; unset without one.
std::optional<double> quota_of_cores(const SystemFiles& files);

// Bytes that the groups' memory limits leave; unset without one. Pages of files can be given back, so only what is
// anonymous counts.
std::optional<std::int64_t> memory_left(const SystemFiles& files);

}  // namespace sdtune::model
