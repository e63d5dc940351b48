#include "model/files/model_fingerprint.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "model/files/mapped_file.h"
#include "model/files/sha256.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

constexpr std::array kParts = {"text_encoder", "text_encoder_2", "unet"};
constexpr std::size_t kBlocks = 256;
constexpr std::size_t kBlockBytes = 4096;

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* part : kParts) {
    std::error_code absent;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / part, absent)) {
      const bool counts = entry.path().extension() == ".safetensors" || entry.path().filename() == "config.json";
      if (counts) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void add_content(Sha256& hash, std::span<const std::byte> bytes) {
  if (bytes.size() <= kBlocks * kBlockBytes) {
    hash.update(bytes);
    return;
  }
  const std::size_t last = bytes.size() - kBlockBytes;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    hash.update(bytes.subspan(last / (kBlocks - 1) * block, kBlockBytes));
  }
}

}  // namespace

std::string model_fingerprint(const fs::path& folder) {
  Sha256 hash;
  for (const fs::path& path : files_of(folder)) {
    const MappedFile file(path);
    const std::string name =
        path.lexically_relative(folder).generic_string() + " " + std::to_string(file.bytes().size()) + "\n";
    hash.update(std::as_bytes(std::span(name)));
    add_content(hash, file.bytes());
  }
  return hash.hex_digest();
}

}  // namespace sdtune
