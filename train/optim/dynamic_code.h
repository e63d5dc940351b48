// Numbers in [-1, 1] or [0, 1] as 8 bits: the dynamic data types of Dettmers et al., "8-bit optimizers via block-wise
// quantization" (ICLR 2022), section 2. Seven decades, from 1e-7 to 1; the k-th from below holds 2^k numbers of each
// sign (2^(k+1) without a sign), evenly spaced in the middles of as many parts of the decade; and 0 and 1.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace sdtune::train {

class DynamicCode {
 public:
  static const DynamicCode& with_sign();     // 127 below 0, 0, 128 above
  static const DynamicCode& without_sign();  // 0, 255 above

  // Growing.
  const std::array<float, 256>& values() const { return values_; }
  // Between each two neighbours.
  const std::array<float, 255>& midpoints() const { return midpoints_; }

  // The index of the value that is nearest to x in [-1, 1]; of two equally near ones the lower. The leading bits of x
  // give it or the one below, because no two midpoints share them.
  std::uint8_t nearest(float x) const {
    const std::uint32_t first = first_guess_[std::bit_cast<std::uint32_t>(x) >> kDroppedBits];
    return static_cast<std::uint8_t>(first + (x > above_[first] ? 1U : 0U));
  }

 private:
  explicit DynamicCode(bool has_sign);

  // Of a float's 23 bits of fraction the first 8 are used, steps of less than 0.4 %.
  static constexpr int kDroppedBits = 15;

  std::array<float, 256> values_ = {};
  std::array<float, 255> midpoints_ = {};
  std::array<float, 256> above_ = {};      // the midpoint above each value; infinity above the last
  std::vector<std::uint8_t> first_guess_;  // by the leading bits of x
};

}  // namespace sdtune::train
