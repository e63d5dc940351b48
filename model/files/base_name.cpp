#include "model/files/base_name.h"

#include <filesystem>

#include "model/files/hub_cache.h"

namespace sdtune {

namespace fs = std::filesystem;

std::string public_base_name(const std::string& base) {
  std::error_code error;
  if (is_hub_id(base) && !fs::exists(base, error)) return base;
  constexpr std::string_view kStart = "models--";
  fs::path last;
  for (const fs::path& part : fs::path(base)) {
    const std::string text = part.string();
    const std::size_t between = text.find("--", kStart.size());
    if (text.starts_with(kStart) && between != std::string::npos) {
      return text.substr(kStart.size(), between - kStart.size()) + "/" + text.substr(between + 2);
    }
    if (!text.empty()) last = part;
  }
  return last.string();
}

}  // namespace sdtune
