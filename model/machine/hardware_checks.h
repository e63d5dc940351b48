// Processor and memory.
// Nothing here asks the kernel itself: files come through SystemFiles, the rest as facts, so that every line can be
// tested on any machine.
#pragma once

#include "model/machine/machine_check.h"
#include "model/machine/process_facts.h"

namespace sdtune::model {

// Processor, instruction sets and the cores that a container leaves; warns without AVX2 on x86-64, and where more
// OpenMP threads start than there are cores (LibTorch's threads then wait for each other).
MachineCheck check_cpu(const SystemFiles& files, const ProcessFacts& facts);

// What is free of the machine's memory, or of the container's limit: fails below 1 GiB, which the bundled base needs,
// warns below 4 GiB.
MachineCheck check_memory(const SystemFiles& files);

}  // namespace sdtune::model
