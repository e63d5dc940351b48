#include "model/core/out_of_memory.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sdtune::model {

bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  constexpr std::array<std::string_view, 3> kSigns = {"DefaultCPUAllocator: can't allocate memory",
                                                      "DefaultCPUAllocator: not enough memory", "out of memory"};
  const std::string_view text = error.what_without_backtrace();
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

}  // namespace sdtune::model
