#include "model/machine/process_facts.h"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

namespace sdtune::model {
namespace {

std::int64_t soft_limit(__rlimit_resource_t resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

std::int64_t cores_granted() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return ::sysconf(_SC_NPROCESSORS_ONLN);  // above 1024 cores
  return CPU_COUNT(&set);
}

std::int64_t size_of_shared_memory() {
  struct statvfs status {};
  if (::statvfs("/dev/shm", &status) != 0) return 0;
  return static_cast<std::int64_t>(status.f_blocks) * static_cast<std::int64_t>(status.f_frsize);
}

std::optional<bool> clock_is_synchronized() {
  timex question{};  // modes 0: only asks
  return synchronized_by_answer(::adjtimex(&question));
}

std::string kernel_name() {
  utsname name{};
  if (::uname(&name) != 0) return "";
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

}  // namespace

std::optional<bool> synchronized_by_answer(int answer) {
  if (answer < 0) return std::nullopt;
  return answer != TIME_ERROR;
}

ProcessFacts process_facts() {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  return {.cores = cores_granted(),
          .openmp_threads = threads == nullptr ? "" : threads,
          .open_files = soft_limit(RLIMIT_NOFILE),
          .locked_memory = soft_limit(RLIMIT_MEMLOCK),
          .shared_memory_bytes = size_of_shared_memory(),
          .clock_is_synchronized = clock_is_synchronized(),
          .now = std::chrono::system_clock::now(),
          .kernel = kernel_name(),
          .c_library = std::string("glibc ") + gnu_get_libc_version()};
}

FolderFacts folder_facts(const std::filesystem::path& run_folder) {
  std::error_code none;
  FolderFacts facts;
  facts.folder = std::filesystem::absolute(run_folder, none);
  while (!std::filesystem::is_directory(facts.folder, none) && facts.folder.has_relative_path()) {
    facts.folder = facts.folder.parent_path();
  }
  struct statfs status {};
  if (::statfs(facts.folder.c_str(), &status) == 0) {
    facts.type = static_cast<std::uint64_t>(status.f_type);
    facts.free_bytes = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_bsize);
  }
  facts.is_writable = ::access(facts.folder.c_str(), W_OK | X_OK) == 0;
  return facts;
}

}  // namespace sdtune::model
