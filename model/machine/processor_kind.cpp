#include "model/machine/processor_kind.h"

#include <fstream>
#include <sstream>

namespace sdtune::model {
namespace {

// Of the fields' names on x86-64 and aarch64, whichever is there.
std::string either_field(const SystemFiles& files, const std::string& one, const std::string& other) {
  std::string value = cpu_field(files, one);
  if (value.empty()) value = cpu_field(files, other);
  return value.empty() ? "unknown" : value;
}

std::string widest_instruction_set(const std::string& flags) {
  for (const char* name : {"amx_bf16", "avx512_bf16", "avx512f", "avx2", "bf16", "sve", "asimd"}) {
    if (has_flag(flags, name)) return name;
  }
  return "none";
}

}  // namespace

std::string cpu_field(const SystemFiles& files, const std::string& name) {
  std::ifstream stream(files.path("proc/cpuinfo"));
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    // "model" is not "model name".
    const std::size_t colon = line.find_first_not_of(" \t", name.size());
    if (colon == std::string::npos || line[colon] != ':') continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

bool has_flag(const std::string& flags, const std::string& name) {
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    if (word == name) return true;
  }
  return false;
}

ProcessorKind processor_kind(const SystemFiles& files) {
  return {.vendor = either_field(files, "vendor_id", "CPU implementer"),
          .family = either_field(files, "cpu family", "CPU part"),
          .model = either_field(files, "model", "CPU variant"),
          .isa = widest_instruction_set(cpu_field(files, "flags") + " " + cpu_field(files, "Features"))};
}

ProcessorKind processor_kind() {
  return processor_kind(system_files());
}

std::string kind_text(const ProcessorKind& kind) {
  return kind.vendor + " family " + kind.family + " model " + kind.model + ", " + kind.isa;
}

}  // namespace sdtune::model
