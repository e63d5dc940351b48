#include "app/hub/hub_words.h"

#include <fmt/format.h>

namespace sdtune::app {

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.0f} kB", bytes / 1e3);
  if (bytes < 1'000'000'000) return fmt::format("{:.0f} MB", bytes / 1e6);
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

}  // namespace sdtune::app
