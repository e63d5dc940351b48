// Processor, memory, and the processor's number formats.
// Nothing here asks the kernel itself: files come through SystemFiles, the rest as facts, so that every line can be
// tested on any machine.
#pragma once

#include "model/machine/machine_check.h"
#include "model/machine/process_facts.h"
#include "model/machine/processor_table.h"

namespace sdtune::model {

// Processor, instruction sets and the cores that a container leaves; warns without AVX2 on x86-64, and where more
// OpenMP threads start than there are cores (LibTorch's threads then wait for each other).
MachineCheck check_cpu(const SystemFiles& files, const ProcessFacts& facts);

// What is free of the machine's memory, or of the container's limit: fails below 1 GiB, which the bundled base needs,
// warns below 4 GiB.
MachineCheck check_memory(const SystemFiles& files);

// Which number format `auto` takes on this processor, and which implementations of operators are taken; warns where no
// table knows a processor that computes bfloat16.
MachineCheck check_formats(const ProcessorKind& kind, const std::optional<ProcessorEntry>& entry);

}  // namespace sdtune::model
