// How the moments of a parameter are called in optimizer.safetensors: torch.optim.AdamW's words after the name.
#pragma once

#include <string>

namespace sdtune::train {

inline std::string mean_name(const std::string& parameter) {
  return parameter + ".exp_avg";
}
inline std::string square_name(const std::string& parameter) {
  return parameter + ".exp_avg_sq";
}

}  // namespace sdtune::train
