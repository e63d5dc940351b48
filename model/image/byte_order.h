// Integers inside file headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sdtune::model {

// The unsigned integer in bytes[offset, offset + count), most significant byte first; count <= 4. Throws
// std::out_of_range beyond the end.
inline std::uint32_t big_endian(std::string_view bytes, std::size_t offset, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes.at(offset + i));
  return value;
}

// The same, least significant byte first.
inline std::uint32_t little_endian(std::string_view bytes, std::size_t offset, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(bytes.at(offset + i));
  return value;
}

}  // namespace sdtune::model
