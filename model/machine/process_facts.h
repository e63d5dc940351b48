// What the kernel grants this process, asked by system calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

namespace sdtune::model {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

struct ProcessFacts {
  std::int64_t cores = 1;                   // this process may run on
  std::string openmp_threads;               // OMP_NUM_THREADS, "" where it is unset
  std::int64_t open_files = kUnlimited;     // soft limit
  std::int64_t locked_memory = kUnlimited;  // bytes, soft limit
  std::int64_t shared_memory_bytes = 0;     // size of /dev/shm; 0: there is none
  // As the kernel knows it from a time daemon; unset where it may not be asked, as in some containers.
  std::optional<bool> clock_is_synchronized = true;
  std::chrono::system_clock::time_point now;  // the clock
  std::string kernel;                         // "Linux 6.1.0 x86_64"
  std::string c_library;                      // "glibc 2.36"
};

ProcessFacts process_facts();

// What an answer of adjtimex(2) says of the clock: unset for -1, a call that failed.
std::optional<bool> synchronized_by_answer(int answer);

// The file system that a run folder is on.
struct FolderFacts {
  std::filesystem::path folder;  // the nearest folder that is there already
  std::uint64_t type = 0;        // f_type of statfs(2)
  std::int64_t free_bytes = 0;   // for this user
  bool is_writable = false;
};

FolderFacts folder_facts(const std::filesystem::path& run_folder);

}  // namespace sdtune::model
