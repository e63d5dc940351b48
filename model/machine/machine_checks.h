// What `sdtune doctor --machine` finds good or bad about a machine, beside its GPUs. Nothing here asks the kernel
// itself: files come through SystemFiles, the rest as facts, so that every line can be tested on any machine.
#pragma once

#include <cstdint>

#include "model/machine/machine_check.h"
#include "model/machine/process_facts.h"

namespace sdtune::model {

// Processor, instruction sets and the cores that a container leaves; warns without AVX2 on x86-64, and where more
// OpenMP threads start than there are cores (LibTorch's threads then wait for each other).
MachineCheck check_cpu(const SystemFiles& files, const ProcessFacts& facts);

// What is free of the machine's memory, or of the container's limit: fails below 1 GiB, which the bundled base needs,
// warns below 4 GiB.
MachineCheck check_memory(const SystemFiles& files);

// /dev/shm, through which NCCL's ranks on one machine exchange: warns below 1 GiB with several GPUs.
MachineCheck check_shared_memory(const ProcessFacts& facts, std::int64_t gpus);

// Files that may be open at once: warns below 1024.
MachineCheck check_open_files(const ProcessFacts& facts);

// InfiniBand and RoCE devices: warns where one cannot be used from here (no device file, no active port, locked
// memory).
MachineCheck check_verbs(const SystemFiles& files, const ProcessFacts& facts);

// Warns where no time daemon keeps the clock, fails where it is years behind: certificates are refused then.
MachineCheck check_clock(const ProcessFacts& facts);

// The file system of the run folder: fails where it cannot be written or has less than 1 GiB left, warns where it is
// temporary (memory, a container's own layer), on a network, or below 20 GiB.
MachineCheck check_run_folder(const FolderFacts& facts);

// sdtune, LibTorch, C library, kernel and system.
MachineCheck check_versions(const SystemFiles& files, const ProcessFacts& facts, const std::string& sdtune,
                            const std::string& libtorch);

}  // namespace sdtune::model
