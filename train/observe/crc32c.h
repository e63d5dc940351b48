// CRC-32C (Castagnoli, polynomial 0x1EDC6F41), the checksum of TensorBoard's records.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sdtune::train {

namespace detail {
// One entry a byte, for the reflected polynomial.
constexpr std::array<std::uint32_t, 256> make_crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = remainder;
  }
  return table;
}
inline constexpr std::array<std::uint32_t, 256> kCrc32cTable = make_crc32c_table();
}  // namespace detail

// crc32c("123456789") is 0xE3069283.
constexpr std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) {
    crc = crc >> 8 ^ detail::kCrc32cTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFFu];
  }
  return ~crc;
}

}  // namespace sdtune::train
