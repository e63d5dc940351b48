// A preset as help shows it: named values that take the place of options' defaults.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sdtune {

struct Preset {
  std::string file;                                         // "lora_sd15.yaml"
  std::string applies_to;                                   // "--method lora, Stable Diffusion 1.x"
  std::vector<std::pair<std::string, std::string>> values;  // option and value as in config.yaml, in their order there

  // The value of an option, or nullptr where the preset does not set it.
  const std::string* value_of(const std::string& option) const {
    for (const auto& [name, value] : values) {
      if (name == option) return &value;
    }
    return nullptr;
  }
};

}  // namespace sdtune
