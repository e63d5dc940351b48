// The file system of the run folder.
// Nothing here asks the kernel itself: files come through SystemFiles, the rest as facts, so that every line can be
// tested on any machine.
#pragma once

#include "model/machine/machine_check.h"
#include "model/machine/process_facts.h"

namespace sdtune::model {

// The file system of the run folder: fails where it cannot be written or has less than 1 GiB left, warns where it is
// temporary (memory, a container's own layer), on a network, or below 20 GiB.
MachineCheck check_run_folder(const FolderFacts& facts);

}  // namespace sdtune::model
