// One thing that `sdtune doctor --machine` examines, and what it means for a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sdtune::model {

enum class CheckStatus {
  kOk,
  kWarn,  // runs work, and something is slow, lost or easily full
  kFail,  // a run cannot work
};

struct MachineCheck {
  std::string name;
  CheckStatus status = CheckStatus::kOk;
  std::string found = {};   // what is there, in one line
  std::string advice = {};  // what to do; "" where nothing is to be done
};

const char* status_name(CheckStatus status);  // ok, warn, fail

// Where the kernel's files are: "/", or a test's copy of them.
class SystemFiles {
 public:
  explicit SystemFiles(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path path(const std::string& file) const { return root_ / file; }
  bool has(const std::string& file) const;
  // The whole of a file without trailing white space; "" where it cannot be read.
  std::string text(const std::string& file) const;
  // The first number of a file; unset where there is none ("max").
  std::optional<std::int64_t> number(const std::string& file) const;
  // "Name:  123 kB" of /proc/meminfo and the like, in bytes.
  std::optional<std::int64_t> kibibytes(const std::string& file, const std::string& name) const;
  // Names in a folder, sorted; empty where it is not there.
  std::vector<std::string> names(const std::string& folder) const;

 private:
  std::filesystem::path root_;
};

// This machine's; the environment variable SDTUNE_SYSTEM_ROOT replaces /, for tests.
SystemFiles system_files();

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// "12.5 GiB".
std::string gibibytes_text(std::int64_t bytes);

}  // namespace sdtune::model
