// What a decoder of files with transparency gives, before it becomes an Image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sdtune::model {

struct DecodedPixels {
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  bool has_alpha = false;
  std::vector<std::uint8_t> rgba;  // rows without padding; alpha 255 where the file has none

  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * 4; }
};

}  // namespace sdtune::model
