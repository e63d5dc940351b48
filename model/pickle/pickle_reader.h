// Reads a pickle as data: values in memory of our own, never an object or a call. It knows the opcodes that torch.save
// uses (Python's pickletools says what each does) and the names of pickle_globals.h; everything else is refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/pickle/pickle_globals.h"

namespace sdtune {

enum class PickleKind {
  kInert,    // None, a float, bytes, a set, an unread object: nothing that says where a tensor is
  kInteger,  // `integer`; booleans too
  kText,     // `text`
  kTuple,    // `items`
  kList,     // `items`
  kMapping,  // `items`: key, value, key, value, ...
  kGlobal,   // `global`
  kStorage,  // `text` is its name in the archive, `integer` its number of elements, `global` its type
  kTensor,   // `items`: storage, size, stride; `integer` is its offset in elements; `global` a dtype of its own or null
};

// Values refer to each other by their place in Pickle::values, so that one may contain itself.
using PickleRef = std::uint32_t;

struct PickleValue {
  PickleKind kind = PickleKind::kInert;
  std::int64_t integer = 0;
  std::string_view text;  // into the pickle's bytes
  const PickleGlobal* global = nullptr;
  std::vector<PickleRef> items;
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleRef root = 0;

  const PickleValue& at(PickleRef place) const { return values[place]; }
};

// `bytes` must outlive the result. Takes memory and time in proportion to bytes.size(). Throws WeightError naming
// `where`, the byte and the opcode or name that is refused.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& where);

}  // namespace sdtune
