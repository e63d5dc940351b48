// The JSON of a safetensors header, event by event: no document is built, so a hostile header of 100 MB costs no more
// than what it describes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/safetensors_header.h"

namespace sdtune {

// Fills tensors and metadata of a header. Every callback throws WeightError naming the file and the tensor for what the
// format does not allow: another structure, a key given twice, an unknown dtype, numbers that are negative, broken or
// too large, a byte range that is not the shape's size.
class SafetensorsHeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeaderReader(SafetensorsHeader& header, std::string where) : header_(header), where_(std::move(where)) {}

  bool null() override { fail("holds a null"); }
  bool boolean(bool) override { fail("holds a true or false"); }
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t&) override { fail("holds binary data"); }
  bool start_object(std::size_t count) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t count) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override;

 private:
  enum class Place { kStart, kTop, kEntry, kMetadata, kShape, kOffsets, kEnd };

  [[noreturn]] void fail(const std::string& what) const;
  void finish_entry();

  SafetensorsHeader& header_;
  std::string where_;
  Place place_ = Place::kStart;
  bool has_metadata_ = false;
  std::string name_;   // of the tensor
  std::string field_;  // of the tensor, or key of the metadata
  std::vector<std::string> fields_;
  TensorEntry entry_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace sdtune
