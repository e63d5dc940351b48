// A curve over the steps as an SVG image.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sdtune::train {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // step and value, rising steps; what is not finite is left out
};

// The values, thin, and where there are more than 40 of them their mean over a fortieth of the run, bold; lowest,
// highest and last value in words. Empty for fewer than two points.
std::string curve_svg(const Curve& curve);

}  // namespace sdtune::train
