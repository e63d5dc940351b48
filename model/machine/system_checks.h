// Limits, versions and the clock.
// Nothing here asks the kernel itself: files come through SystemFiles, the rest as facts, so that every line can be
// tested on any machine.
#pragma once

#include <cstdint>
#include <string>

#include "model/machine/machine_check.h"
#include "model/machine/process_facts.h"

namespace sdtune::model {

// /dev/shm, through which NCCL's ranks on one machine exchange: warns below 1 GiB with several GPUs.
MachineCheck check_shared_memory(const ProcessFacts& facts, std::int64_t gpus);

// Files that may be open at once: warns below 1024.
MachineCheck check_open_files(const ProcessFacts& facts);

// Warns where no time daemon keeps the clock, fails where it is years behind: certificates are refused then.
MachineCheck check_clock(const ProcessFacts& facts);

// sdtune, LibTorch, C library, kernel and system.
MachineCheck check_versions(const SystemFiles& files, const ProcessFacts& facts, const std::string& sdtune,
                            const std::string& libtorch);

}  // namespace sdtune::model
