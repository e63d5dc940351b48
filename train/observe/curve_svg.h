// A curve over the steps as an SVG image with axes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sdtune::train {

struct Curve {
  std::string name;
  std::string unit;                               // "per second", "GiB"; empty: a number without one
  std::vector<std::pair<double, double>> points;  // step and value, rising steps; what is not finite is left out
};

// Round numbers at most `most` of them, from the last below `low` to the first above `high`: steps of 1, 2 or 5 times a
// power of ten. `low` and `high` themselves where only rounding is between them.
std::vector<double> axis_numbers(double low, double high, int most);

// The values, thin, and where there are more than 40 of them their mean over a twentieth of the run around each, bold;
// axes with round numbers; lowest, highest and last value in words. Few values have a dot each. Empty for fewer than
// two points and for a constant, which values that differ by less than 1e-12 of them are too.
std::string curve_svg(const Curve& curve);

}  // namespace sdtune::train
