#include "train/portrait/evaluate/scores.h"

#include <algorithm>

namespace sdtune::train::evaluate {

std::optional<Estimate> Scores::find(const std::string& name) const {
  const auto found =
      std::find_if(figures.begin(), figures.end(), [&](const auto& figure) { return figure.first == name; });
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace sdtune::train::evaluate
