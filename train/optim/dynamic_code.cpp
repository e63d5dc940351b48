#include "train/optim/dynamic_code.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sdtune::train {

namespace {

constexpr int kDecades = 7;

std::vector<float> dynamic_values(bool has_sign) {
  std::vector<float> values = {0.0F, 1.0F};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int parts = 1 << (has_sign ? decade : decade + 1);
    const double top = std::pow(10.0, decade - (kDecades - 1));
    for (int part = 0; part < parts; ++part) {
      const auto value = static_cast<float>(top * (0.1 + 0.9 * (part + 0.5) / parts));
      values.push_back(value);
      if (has_sign) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

DynamicCode::DynamicCode(bool has_sign) : first_guess_(std::size_t{1} << (32 - kDroppedBits)) {
  const std::vector<float> values = dynamic_values(has_sign);
  std::copy(values.begin(), values.end(), values_.begin());
  for (std::size_t i = 0; i < midpoints_.size(); ++i) midpoints_[i] = 0.5F * (values_[i] + values_[i + 1]);
  std::copy(midpoints_.begin(), midpoints_.end(), above_.begin());
  above_.back() = std::numeric_limits<float>::infinity();
  for (std::size_t lead = 0; lead < first_guess_.size(); ++lead) {
    // The least number with these leading bits: of the negative ones that with all other bits set.
    const auto bits = static_cast<std::uint32_t>(lead) << kDroppedBits;
    const bool is_negative = (bits >> 31) != 0;
    const auto least = std::bit_cast<float>(is_negative ? bits | ((1U << kDroppedBits) - 1) : bits);
    const auto below = std::lower_bound(midpoints_.begin(), midpoints_.end(), least) - midpoints_.begin();
    first_guess_[lead] = static_cast<std::uint8_t>(below);
  }
}

const DynamicCode& DynamicCode::with_sign() {
  static const DynamicCode code(true);
  return code;
}

const DynamicCode& DynamicCode::without_sign() {
  static const DynamicCode code(false);
  return code;
}

}  // namespace sdtune::train
