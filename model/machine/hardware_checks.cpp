#include "model/machine/hardware_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/machine/control_groups.h"

namespace sdtune::model {
namespace {

// Instruction sets that decide how fast LibTorch computes, as the kernel names them.
std::string instruction_sets(const std::string& flags) {
  std::string list;
  for (const char* name : {"avx2", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "bf16", "sve"}) {
    if (has_flag(flags, name)) list += (list.empty() ? "" : " ") + std::string(name);
  }
  return list;
}

}  // namespace

MachineCheck check_cpu(const SystemFiles& files, const ProcessFacts& facts) {
  const std::string name = cpu_field(files, "model name");
  const std::string flags = cpu_field(files, "flags") + " " + cpu_field(files, "Features");
  const std::string sets = instruction_sets(flags);
  const auto quota = quota_of_cores(files);
  const auto allowed = quota ? std::max<std::int64_t>(1, std::lround(*quota)) : facts.cores;
  MachineCheck check{.name = "cpu"};
  check.found =
      fmt::format("{}, {} cores{}{}", name.empty() ? "unknown processor" : name, facts.cores,
                  quota ? fmt::format(" (the container may use {:g})", *quota) : "", sets.empty() ? "" : ", " + sets);
  if (has_flag(flags, "sse2") && !has_flag(flags, "avx2")) {
    check.status = CheckStatus::kWarn;
    check.advice = "LibTorch is several times slower without AVX2: rent another machine for work on the CPU";
  }
  const std::int64_t threads = facts.openmp_threads.empty() ? facts.cores : std::atoll(facts.openmp_threads.c_str());
  if (threads > std::min(allowed, facts.cores)) {
    check.status = CheckStatus::kWarn;
    check.advice = fmt::format("{} threads would share {} cores and wait for each other: set OMP_NUM_THREADS={}",
                               threads, std::min(allowed, facts.cores), std::min(allowed, facts.cores));
  }
  return check;
}

MachineCheck check_memory(const SystemFiles& files) {
  MachineCheck check{.name = "memory"};
  const auto total = files.kibibytes("proc/meminfo", "MemTotal");
  auto free = files.kibibytes("proc/meminfo", "MemAvailable");
  if (!total || !free) {
    check.status = CheckStatus::kWarn;
    check.found = "not known";
    check.advice = "/proc/meminfo cannot be read: `sdtune plan` cannot compare what a run needs with what there is";
    return check;
  }
  const auto container = memory_left(files);
  const bool is_limited = container && *container < *free;
  if (is_limited) free = container;
  check.found = fmt::format("{} free of {}{}", gibibytes_text(*free), gibibytes_text(*total),
                            is_limited ? ", as the container's limit leaves" : "");
  if (*free < 4 * kGiB) {
    check.status = *free < kGiB ? CheckStatus::kFail : CheckStatus::kWarn;
    check.advice = *free < kGiB ? "too little even for the bundled base: end other programs or take a larger machine"
                                : "enough for the bundled base: `sdtune plan` says what another model needs";
  }
  return check;
}

MachineCheck check_formats(const ProcessorKind& kind, const std::optional<ProcessorEntry>& entry) {
  MachineCheck check{.name = "formats"};
  if (entry) {
    check.found = fmt::format("auto on the CPU: {} for images, {} for training; {}", entry->sample, entry->train,
                              implementation_text(entry->implementation));
    return check;
  }
  check.found = "auto on the CPU: float32, no table knows " + kind_text(kind);
  if (kind.isa != "amx_bf16" && kind.isa != "avx512_bf16" && kind.isa != "bf16") return check;
  check.status = CheckStatus::kWarn;
  check.advice = "`sdtune tune-machine` times whether bfloat16 is faster, for --dtype auto";
  return check;
}

}  // namespace sdtune::model
