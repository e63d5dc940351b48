#include "model/core/hardware_fault.h"

#include <c10/util/Exception.h>

#include <array>
#include <string>
#include <string_view>

namespace sdtune::model {

std::optional<Problem> hardware_fault(const std::exception& error) {
  constexpr std::array<std::string_view, 3> kSigns = {
      "uncorrectable ECC error",
      "uncorrectable NVLink error",
      "Invalid access of peer GPU memory over nvlink or a hardware error",
  };
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  for (const std::string_view sign : kSigns) {
    if (text.find(sign) == std::string::npos) continue;
    return Problem{"GPU", "its hardware failed: " + text.substr(0, text.find('\n')),
                   "start again, on another machine if it comes back; nvidia-smi -q -d ECC says more"};
  }
  return std::nullopt;
}

}  // namespace sdtune::model
