// InfiniBand and RoCE devices.
// Nothing here asks the kernel itself: files come through SystemFiles, the rest as facts, so that every line can be
// tested on any machine.
#pragma once

#include "model/machine/machine_check.h"
#include "model/machine/process_facts.h"

namespace sdtune::model {

// InfiniBand and RoCE devices: warns where one cannot be used from here (no device file, no active port, locked
// memory).
MachineCheck check_verbs(const SystemFiles& files, const ProcessFacts& facts);

}  // namespace sdtune::model
