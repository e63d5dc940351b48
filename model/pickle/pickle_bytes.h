// The bytes of a pickle, read in order and never beyond their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/base/error.h"

namespace sdtune {

class PickleBytes {
 public:
  PickleBytes(std::span<const std::byte> bytes, const std::string& where)
      : rest_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), size_(bytes.size()), where_(where) {}

  // Throws WeightError with the place.
  [[noreturn]] void fail(const std::string& what) const {
    throw WeightError(where_ + ": byte " + std::to_string(size_ - rest_.size()), what,
                      "only the tensors of PyTorch files are read; nothing in them is run");
  }

  // The next bytes, as they are.
  std::string_view text(std::uint64_t bytes) {
    if (bytes > rest_.size()) fail("the pickle is cut off");
    const std::string_view found = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return found;
  }

  // A little-endian number.
  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    const std::string_view found = text(bytes);
    for (unsigned i = 0; i < bytes; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(found[i])) << (8 * i);
    }
    return value;
  }

  // A little-endian number in two's complement, of at most 8 bytes; 0 of none.
  std::int64_t signed_number(unsigned bytes) {
    const std::uint64_t value = number(bytes);
    if (bytes == 0 || bytes == 8) return static_cast<std::int64_t>(value);
    const unsigned unused = 64 - 8 * bytes;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

  // Up to the next line break, which is left out.
  std::string_view line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) fail("the pickle is cut off");
    const std::string_view found = text(end);
    rest_.remove_prefix(1);
    return found;
  }

  std::size_t size() const { return size_; }

 private:
  std::string_view rest_;
  std::size_t size_;
  const std::string& where_;
};

}  // namespace sdtune
