#include "model/machine/machine_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

namespace sdtune::model {

const char* status_name(CheckStatus status) {
  switch (status) {
    case CheckStatus::kOk:
      return "ok";
    case CheckStatus::kWarn:
      return "warn";
    case CheckStatus::kFail:
      return "fail";
  }
  return "";
}

SystemFiles system_files() {
  const char* root = std::getenv("SDTUNE_SYSTEM_ROOT");
  return SystemFiles(root == nullptr ? "/" : root);
}

bool SystemFiles::has(const std::string& file) const {
  std::error_code none;
  return std::filesystem::exists(path(file), none);
}

std::string SystemFiles::text(const std::string& file) const {
  std::ifstream stream(path(file));
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text;
}

std::optional<std::int64_t> SystemFiles::number(const std::string& file) const {
  std::ifstream stream(path(file));
  std::int64_t value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> SystemFiles::kibibytes(const std::string& file, const std::string& name) const {
  constexpr std::int64_t kKibibyte = 1024;
  std::ifstream stream(path(file));
  std::string word;
  std::int64_t value = 0;
  while (stream >> word) {
    if (word == name + ":" && stream >> value) return value * kKibibyte;
  }
  return std::nullopt;
}

std::vector<std::string> SystemFiles::names(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(path(folder), none)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string gibibytes_text(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
}

}  // namespace sdtune::model
