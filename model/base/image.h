// An image in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace sdtune {

// 8-bit sRGB, three channels, row by row: rgb[(y * width + x) * 3 + channel].
struct Image {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  std::vector<std::uint8_t> rgb;
};

}  // namespace sdtune
