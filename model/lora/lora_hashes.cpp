#include "model/lora/lora_hashes.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "model/files/mapped_file.h"
#include "model/files/safetensors_header.h"
#include "model/files/sha256.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::model {
namespace {

constexpr std::uint64_t kLegacyBegin = 0x100000;
constexpr std::uint64_t kLegacyEnd = kLegacyBegin + 0x10000;
constexpr std::size_t kLegacyDigits = 8;
constexpr const char* kModelHashKey = "sshs_model_hash";
constexpr std::size_t kModelDigits = 64;

// Of a stream that begins at byte `at` of a file: hashes what lies inside the legacy range.
void update_legacy(Sha256& hash, std::span<const std::byte> bytes, std::uint64_t at) {
  const std::uint64_t begin = std::clamp(kLegacyBegin, at, at + bytes.size()) - at;
  const std::uint64_t end = std::clamp(kLegacyEnd, at, at + bytes.size()) - at;
  hash.update(bytes.subspan(begin, end - begin));
}

}  // namespace

void add_lora_hashes(const NamedTensors& tensors, std::map<std::string, std::string>& metadata) {
  NamedTensors sorted = tensors;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::pair<std::string, TensorEntry>> entries;
  for (const auto& [name, tensor] : sorted) {
    entries.emplace_back(name, TensorEntry{safetensors_name(tensor.scalar_type()), tensor.sizes().vec(), 0, 0});
  }
  std::map<std::string, std::string> shown;
  for (const auto& [key, value] : metadata) {
    if (key.starts_with("ss_")) shown[key] = value;
  }
  const std::string header = make_safetensors_header(entries, shown);
  Sha256 model, legacy;
  update_legacy(legacy, std::as_bytes(std::span(header)), 0);
  std::uint64_t at = header.size();
  for (const auto& [name, tensor] : sorted) {
    const torch::Tensor stored = tensor.detach().to(torch::kCPU).contiguous();
    const std::span bytes(static_cast<const std::byte*>(stored.const_data_ptr()), stored.nbytes());
    model.update(bytes);
    update_legacy(legacy, bytes, at);
    at += bytes.size();
  }
  metadata[kModelHashKey] = model.hex_digest();
  metadata["sshs_legacy_hash"] = legacy.hex_digest().substr(0, kLegacyDigits);
}

std::string lora_model_hash(const std::filesystem::path& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(file.bytes(), path.string());
  const auto said = header.metadata.find(kModelHashKey);
  const bool is_said = said != header.metadata.end() && said->second.size() == kModelDigits &&
                       said->second.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_said) return said->second;
  Sha256 hash;
  hash.update(file.bytes().subspan(header.data_offset));
  return hash.hex_digest();
}

}  // namespace sdtune::model
