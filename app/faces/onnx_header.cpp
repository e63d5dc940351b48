#include "app/faces/onnx_header.h"

#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

namespace sdtune::faces {

namespace {

constexpr std::size_t kFirstOperators = 8;

[[noreturn]] void fail() {
  throw std::runtime_error("is no ONNX network");
}

// The fields of one message of a protocol buffer, in their order.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  // Moves to the next field; false at the end.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    value_ = 0;
    content_ = {};
    switch (tag & 7) {
      case 0:
        value_ = varint();
        return true;
      case 1:
        content_ = take(8);
        return true;
      case 2:
        content_ = take(varint());
        return true;
      case 5:
        content_ = take(4);
        return true;
      default:
        fail();
    }
  }

  std::uint64_t number() const { return number_; }
  std::uint64_t value() const { return value_; }
  std::string_view content() const { return content_; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail();
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0, value_ = 0;
  std::string_view content_;
};

// The last field of that number, which is the one that counts.
std::optional<std::string_view> content_of(std::string_view message, std::uint64_t number) {
  std::optional<std::string_view> found;
  for (Fields fields(message); fields.next();) {
    if (fields.number() == number) found = fields.content();
  }
  return found;
}

// ValueInfoProto.type -> TypeProto.tensor_type -> Tensor.shape -> TensorShapeProto.dim -> Dimension.dim_value.
std::vector<std::int64_t> shape_of(std::string_view value_info) {
  std::optional<std::string_view> message = content_of(value_info, 2);
  for (const std::uint64_t number : {1u, 2u}) {
    if (message) message = content_of(*message, number);
  }
  std::vector<std::int64_t> shape;
  if (!message) return shape;
  for (Fields dimensions(*message); dimensions.next();) {
    if (dimensions.number() != 1) continue;
    std::int64_t extent = 0;
    for (Fields dimension(dimensions.content()); dimension.next();) {
      if (dimension.number() == 1) extent = static_cast<std::int64_t>(dimension.value());
    }
    shape.push_back(extent);
  }
  return shape;
}

std::string read_whole(const std::string& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  std::string content(stream ? static_cast<std::size_t>(stream.tellg()) : 0, '\0');
  stream.seekg(0);
  stream.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!stream) throw std::runtime_error("cannot be read");
  return content;
}

}  // namespace

OnnxHeader read_onnx_header(const std::string& file) {
  const std::string bytes = read_whole(file);
  const std::optional<std::string_view> graph = content_of(bytes, 7);
  if (!graph) fail();
  OnnxHeader header;
  std::set<std::string_view> weights;
  std::vector<std::string_view> inputs;
  for (Fields fields(*graph); fields.next();) {
    if (fields.number() == 1 && header.first_operators.size() < kFirstOperators) {
      header.first_operators.emplace_back(content_of(fields.content(), 4).value_or(""));
    } else if (fields.number() == 5) {
      weights.insert(content_of(fields.content(), 8).value_or(""));
    } else if (fields.number() == 11) {
      inputs.push_back(fields.content());
    }
  }
  for (const std::string_view input : inputs) {
    if (weights.contains(content_of(input, 1).value_or(""))) continue;  // older files list weights as inputs, too
    header.input_shape = shape_of(input);
    return header;
  }
  fail();
}

}  // namespace sdtune::faces
