// The header of a safetensors file: an 8-byte little-endian length, then JSON of names, dtypes, shapes and byte ranges.
// Treated as hostile: whatever does not describe the bytes exactly is refused. Format:
// github.com/huggingface/safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sdtune {

// One tensor: its bytes are [begin, end) after the header.
struct TensorEntry {
  std::string dtype;  // F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
  std::uint64_t data_offset = 0;  // of the first tensor byte in the file
};

// Bytes of one element of a dtype, 0 for a dtype that is not known.
std::uint64_t dtype_bytes(const std::string& dtype);

// Parses and checks the header of a whole file's bytes. Throws WeightError naming `where` and the tensor: other
// formats, length over 100 MB or beyond the file, not JSON, a key given twice, unknown dtype, negative or overflowing
// numbers, a size that is not the shape's, ranges that overlap, leave gaps or do not end where the file ends.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& where);

// The header bytes (length and JSON, padded to 8 bytes) of tensors laid out one after another in the given order; fills
// in begin and end.
std::string make_safetensors_header(std::vector<std::pair<std::string, TensorEntry>>& tensors,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace sdtune
