// Which number format is fastest on which kind of processor: what `auto` means on a CPU. Read from files, never timed
// while a run starts: a timing would change the result's bits from one start to the next.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "model/machine/processor_kind.h"

namespace sdtune::model {

struct ProcessorFormats {
  ProcessorKind kind;
  std::string sample;    // float32 or bfloat16: generates images fastest
  std::string train;     // float32 or bfloat16: trains fastest
  std::string measured;  // where the figures are
};

// The table of this user, which `sdtune tune-machine` writes: SDTUNE_PROCESSORS, else sdtune/processors.yaml under
// XDG_CONFIG_HOME or ~/.config. Need not be there.
std::filesystem::path own_processor_table();

// Throws ConfigError with file:line for what is missing, unknown or no format.
std::vector<ProcessorFormats> read_processor_table(const std::filesystem::path& path);

// What the user's table says of this kind, else configs/processors.yaml; nothing where neither has it. Throws as
// read_processor_table.
std::optional<ProcessorFormats> find_formats(const ProcessorKind& kind);

// Writes the entry into the table, in place of the one of its kind; the file's others stay. Throws StorageError, and as
// read_processor_table for a file that is there.
void add_formats(FileSystem& files, const std::filesystem::path& path, const ProcessorFormats& formats);

}  // namespace sdtune::model
