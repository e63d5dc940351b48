// Files to the machines that lack them, over the process group: without a shared disk, what one rank has written is
// nowhere else.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/base/stop_flag.h"
#include "model/files/file_system.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

struct SentFile {
  std::string name;        // below the folder, with '/'
  std::uint64_t size = 0;  // bytes
  std::string sha256;
  std::int64_t owner = 0;   // the rank that has it
  bool may_replace = true;  // another file of the name where it is lacked; else that is an error
};

// Of this rank.
struct FileExchange {
  torch::Device device = torch::kCPU;  // of the group's tensors
  std::filesystem::path source;        // the folder with the files that it owns
  std::filesystem::path target;        // the folder in which it lacks files; made where it is missing
  // For a file that another rank of the same disk has written to be seen here.
  std::chrono::duration<double> timeout{};
  const StopFlag* stop = nullptr;                 // StopRequest on every rank, once a rank is asked
  std::uint64_t piece = std::uint64_t{64} << 20;  // bytes that are sent at once; the same on every rank
};

// Every rank calls it with the same `files`, and with the indices of those that it lacks. Their owners send them in
// pieces; of ranks that see the same folder one alone writes. Afterwards every rank has its files with the content that
// they are listed with, each whole or not at all. Where one cannot be read, written or seen, every rank throws the same
// Error, of the first rank that failed. Returns whether anything was sent.
bool send_files(ProcessGroup& group, FileSystem& system, const std::vector<SentFile>& files,
                const std::vector<std::size_t>& lacking, const FileExchange& exchange);

}  // namespace sdtune::train
