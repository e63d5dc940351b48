#include "model/files/safetensors_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "model/base/error.h"
#include "model/files/safetensors_header_reader.h"
#include "model/files/weight_format.h"

namespace sdtune {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian and read in place");

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

// The ranges, in order, must follow each other without a gap and end with the file.
void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes, const std::string& where) {
  std::vector<const std::pair<const std::string, TensorEntry>*> order;
  for (const auto& item : header.tensors) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t expected = 0;
  for (const auto* item : order) {
    if (item->second.begin != expected) {
      throw WeightError(where + ": " + item->first, "does not begin where the tensor before it ends (got " +
                                                        std::to_string(item->second.begin) + "; expected " +
                                                        std::to_string(expected) + ")");
    }
    expected = item->second.end;
  }
  if (expected != data_bytes) {
    throw WeightError(where,
                      "is cut off or has extra bytes (the header describes " + std::to_string(expected) +
                          " bytes of tensors; found " + std::to_string(data_bytes) + ")",
                      "copy or download it again");
  }
}

}  // namespace

std::uint64_t dtype_bytes(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> kBytes = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                                              {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                                              {"U8", 1},  {"BOOL", 1}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? 0 : found->second;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& where) {
  refuse_other_formats(file, where);
  std::uint64_t length = 0;
  if (file.size() < sizeof(length)) throw WeightError(where, "is too short to be a safetensors file");
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > kMaxHeaderBytes) throw WeightError(where, "has a header of over 100 MB, or is not a safetensors file");
  if (length > file.size() - sizeof(length))
    throw WeightError(where, "is cut off inside its header", "copy or download it again");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + sizeof(length), length);
  if (!text.starts_with('{')) throw WeightError(where, "has a header that is not a JSON object");
  SafetensorsHeader header;
  header.data_offset = sizeof(length) + length;
  SafetensorsHeaderReader reader(header, where);
  nlohmann::json::sax_parse(text, &reader);
  check_layout(header, file.size() - header.data_offset, where);
  return header;
}

std::string make_safetensors_header(std::vector<std::pair<std::string, TensorEntry>>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  // Put together by hand: our insertion-ordered Json looks for each new key among all before it.
  const auto quoted = [](const std::string& name) { return nlohmann::json(name).dump(); };
  std::string text = "{";
  if (!metadata.empty()) text += quoted("__metadata__") + ":" + nlohmann::json(metadata).dump();
  std::uint64_t offset = 0;
  for (auto& [name, entry] : tensors) {
    std::uint64_t bytes = dtype_bytes(entry.dtype);
    for (const std::int64_t size : entry.shape) bytes *= static_cast<std::uint64_t>(size);
    entry.begin = offset;
    entry.end = offset += bytes;
    const nlohmann::json fields = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    text += (text.size() > 1 ? "," : "") + quoted(name) + ":" + fields.dump();
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string header(sizeof(length), '\0');
  std::memcpy(header.data(), &length, sizeof(length));
  return header + text;
}

}  // namespace sdtune
