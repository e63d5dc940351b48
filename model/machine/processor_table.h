// What is fastest on which kind of processor: the number format that `auto` means on a CPU, and which implementation of
// an operator is taken. Read from files, never timed while a run starts: a timing would change the result's bits from
// one start to the next.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/files/file_system.h"
#include "model/machine/processor_kind.h"

namespace sdtune::model {

struct ProcessorEntry {
  ProcessorKind kind;
  std::string sample;                                               // float32 or bfloat16: generates images fastest
  std::string train;                                                // float32 or bfloat16: trains fastest
  std::string measured;                                             // where the figures are
  CpuImplementation implementation = default_cpu_implementation();  // of both
};

// The table of this user, which `sdtune tune-machine` writes: SDTUNE_PROCESSORS, else sdtune/processors.yaml under
// XDG_CONFIG_HOME or ~/.config. Need not be there.
std::filesystem::path own_processor_table();

// Throws ConfigError with file:line for what is missing, unknown or not allowed. An entry need not name its
// implementations: those left out are the default ones.
std::vector<ProcessorEntry> read_processor_table(const std::filesystem::path& path);

// What the user's table says of this kind, else configs/processors.yaml; nothing where neither has it. Throws as
// read_processor_table.
std::optional<ProcessorEntry> find_processor(const ProcessorKind& kind);

// Writes the entry into the table, in place of the one of its kind; the file's others stay. Throws StorageError, and as
// read_processor_table for a file that is there.
void add_processor(FileSystem& files, const std::filesystem::path& path, const ProcessorEntry& entry);

// The implementations that the tables name for this machine's kind, else the default ones; from now on what this
// process takes (set_cpu_implementation_source). A table that cannot be read is said when something is computed.
void take_implementation_from_table();

}  // namespace sdtune::model
