#include "model/files/safetensors_header_reader.h"

#include <algorithm>
#include <cstdint>

#include "model/base/error.h"

namespace sdtune {
namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kMaxDimensions = 64;  // of a LibTorch tensor

}  // namespace

void SafetensorsHeaderReader::fail(const std::string& what) const {
  std::string place = where_;
  if (!name_.empty()) place += ": " + name_;
  throw WeightError(place, what);
}

bool SafetensorsHeaderReader::number_unsigned(number_unsigned_t value) {
  if (place_ == Place::kShape) {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) fail("has a shape whose size overflows");
    if (entry_.shape.size() == kMaxDimensions) fail("has a shape of more than 64 dimensions");
    entry_.shape.push_back(static_cast<std::int64_t>(value));
  } else if (place_ == Place::kOffsets) {
    if (offsets_.size() == 2) fail("has data_offsets that are not two numbers");
    offsets_.push_back(value);
  } else {
    fail("has the number " + std::to_string(value) + " where none belongs");
  }
  return true;
}

bool SafetensorsHeaderReader::number_integer(number_integer_t value) {
  fail("needs whole numbers from 0 on (got " + std::to_string(value) + ")");
}

bool SafetensorsHeaderReader::number_float(number_float_t, const string_t& text) {
  fail("needs whole numbers from 0 on (got " + text + ")");
}

bool SafetensorsHeaderReader::string(string_t& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata[field_] = value;
  } else if (place_ == Place::kEntry && field_ == "dtype") {
    entry_.dtype = value;
  } else {
    fail("has the text '" + value.substr(0, 40) + "' where none belongs");
  }
  return true;
}

bool SafetensorsHeaderReader::start_object(std::size_t) {
  switch (place_) {
    case Place::kStart:
      place_ = Place::kTop;
      return true;
    case Place::kTop:
      place_ = name_ == kMetadata ? Place::kMetadata : Place::kEntry;
      entry_ = TensorEntry();
      offsets_.clear();
      fields_.clear();
      return true;
    default:
      fail("has an object where none belongs");
  }
}

bool SafetensorsHeaderReader::key(string_t& name) {
  if (place_ == Place::kTop) {
    name_ = name;
    if (header_.tensors.contains(name) || (name == kMetadata && has_metadata_)) fail("is given twice");
    has_metadata_ = has_metadata_ || name == kMetadata;
    return true;
  }
  field_ = name;
  if (place_ == Place::kMetadata) {
    if (header_.metadata.contains(name)) fail("the key '" + name + "' is given twice");
    return true;
  }
  if (name != "dtype" && name != "shape" && name != "data_offsets") {
    fail("has the field '" + name.substr(0, 40) + "' (allowed: dtype, shape, data_offsets)");
  }
  if (std::find(fields_.begin(), fields_.end(), name) != fields_.end()) fail("the field '" + name + "' is given twice");
  fields_.push_back(name);
  return true;
}

bool SafetensorsHeaderReader::end_object() {
  if (place_ == Place::kEntry) finish_entry();
  place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
  name_.clear();
  return true;
}

bool SafetensorsHeaderReader::start_array(std::size_t) {
  if (place_ != Place::kEntry || (field_ != "shape" && field_ != "data_offsets")) {
    fail("has a list where none belongs");
  }
  place_ = field_ == "shape" ? Place::kShape : Place::kOffsets;
  return true;
}

bool SafetensorsHeaderReader::end_array() {
  place_ = Place::kEntry;
  return true;
}

bool SafetensorsHeaderReader::parse_error(std::size_t position, const std::string&,
                                          const nlohmann::detail::exception& error) {
  fail("header is not JSON at its byte " + std::to_string(position) + ": " + error.what());
}

void SafetensorsHeaderReader::finish_entry() {
  if (fields_.size() != 3) fail("lacks a field (needed: dtype, shape, data_offsets)");
  if (offsets_.size() != 2) fail("has data_offsets that are not two numbers");
  std::uint64_t bytes = dtype_bytes(entry_.dtype);
  if (bytes == 0) {
    fail("has a dtype that is not supported (got '" + entry_.dtype.substr(0, 40) +
         "'; allowed: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL)");
  }
  std::int64_t reach = 1;  // of LibTorch's strides, also where a side of 0 leaves no bytes
  for (const std::int64_t size : entry_.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes) ||
        __builtin_mul_overflow(reach, std::max<std::int64_t>(size, 1), &reach)) {
      fail("has a shape whose size overflows");
    }
  }
  entry_.begin = offsets_[0];
  entry_.end = offsets_[1];
  if (entry_.end < entry_.begin || entry_.end - entry_.begin != bytes) {
    fail("has a byte range that is not its shape's size (got " + std::to_string(entry_.begin) + " to " +
         std::to_string(entry_.end) + "; the shape needs " + std::to_string(bytes) + " bytes)");
  }
  header_.tensors.emplace(name_, std::move(entry_));
}

}  // namespace sdtune
