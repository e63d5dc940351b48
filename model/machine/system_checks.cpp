#include "model/machine/system_checks.h"

#include <fmt/format.h>

#include <ctime>

namespace sdtune::model {
namespace {

constexpr std::int64_t kFewFiles = 1024;
constexpr int kFirstYear = 2025;  // no release is older

// NAME="VALUE" of os-release.
std::string system_name(const SystemFiles& files) {
  const std::string text = files.text("etc/os-release");
  const std::string key = "PRETTY_NAME=\"";
  const std::size_t begin = text.find(key);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + key.size();
  return text.substr(from, text.find('"', from) - from);
}

std::string clock_text(std::optional<bool> is_synchronized) {
  if (!is_synchronized) return "not known whether synchronized";
  return *is_synchronized ? "synchronized" : "not synchronized";
}

}  // namespace

MachineCheck check_shared_memory(const ProcessFacts& facts, std::int64_t gpus) {
  MachineCheck check{.name = "shm"};
  check.found = facts.shared_memory_bytes == 0 ? "/dev/shm is missing"
                                               : "/dev/shm of " + gibibytes_text(facts.shared_memory_bytes);
  if (gpus > 1 && facts.shared_memory_bytes < kGiB) {
    check.status = CheckStatus::kWarn;
    check.advice =
        "NCCL between the GPUs of one machine needs more: start the container with --shm-size=8g or --ipc=host";
  }
  return check;
}

MachineCheck check_open_files(const ProcessFacts& facts) {
  MachineCheck check{.name = "files"};
  check.found = facts.open_files == kUnlimited ? "any number may be open"
                                               : std::to_string(facts.open_files) + " may be open at once";
  if (facts.open_files < kFewFiles) {
    check.status = CheckStatus::kWarn;
    check.advice = "raise the limit: ulimit -n 4096";
  }
  return check;
}

MachineCheck check_clock(const ProcessFacts& facts) {
  MachineCheck check{.name = "clock"};
  const std::time_t now = std::chrono::system_clock::to_time_t(facts.now);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  check.found = fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC, {}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                            utc.tm_hour, utc.tm_min, clock_text(facts.clock_is_synchronized));
  if (utc.tm_year + 1900 < kFirstYear) {
    check.status = CheckStatus::kFail;
    check.advice = "the clock is years behind, and servers' certificates are refused: set it (timedatectl set-time)";
  } else if (facts.clock_is_synchronized == false) {
    check.status = CheckStatus::kWarn;
    check.advice = "times of a run may be wrong: start a time daemon on the host (systemd-timesyncd or chrony)";
  }
  return check;
}

MachineCheck check_versions(const SystemFiles& files, const ProcessFacts& facts, const std::string& sdtune,
                            const std::string& libtorch) {
  MachineCheck check{.name = "versions"};
  const std::string system = system_name(files);
  check.found = fmt::format("sdtune {}, LibTorch {}, {}, {}{}", sdtune, libtorch, facts.c_library, facts.kernel,
                            system.empty() ? "" : ", " + system);
  if (files.has(".dockerenv") || files.has("run/.containerenv")) check.found += ", in a container";
  return check;
}

}  // namespace sdtune::model
