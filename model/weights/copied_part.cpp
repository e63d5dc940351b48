#include "model/weights/copied_part.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "model/base/error.h"
#include "model/files/mapped_file.h"
#include "model/files/read_pieces.h"
#include "model/weights/tensor_source.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunk = std::size_t{16} << 20;  // bytes in memory at once

void copy_file(FileSystem& files, const fs::path& from, const fs::path& to) {
  const MappedFile source(from);
  const std::unique_ptr<OutputFile> file = files.create(to);
  for (std::span<const std::byte> left = source.bytes(); !left.empty();) {
    const std::span<const std::byte> chunk = left.first(std::min(kChunk, left.size()));
    file->write(chunk);
    source.release(chunk);
    left = left.subspan(chunk.size());
  }
  file->sync();
  file->close();
}

void compare(const fs::path& from, const fs::path& to) {
  const MappedFile source(from);
  std::span<const std::byte> left = source.bytes();
  bool is_same = true;
  read_pieces(to, PageCache::kDrop, [&](std::span<const std::byte> piece) {
    is_same = is_same && piece.size() <= left.size() && std::memcmp(left.data(), piece.data(), piece.size()) == 0;
    left = left.subspan(std::min(piece.size(), left.size()));
  });
  if (is_same && left.empty()) return;
  throw StorageError(to.string(), "read again, it is not what was written",
                     "the disk or its file system is faulty; write to another one");
}

}  // namespace

void copy_part(FileSystem& files, const fs::path& from, const fs::path& to, const PartKind& kind) {
  const fs::path weights = find_part_weights(from, kind.stem);
  const std::string plain = std::string(kind.stem) + ".safetensors";
  std::vector<std::pair<fs::path, fs::path>> copies = {{from / "config.json", to / "config.json"}};
  if (weights.extension() == ".safetensors") {
    copies.emplace_back(weights, to / plain);
  } else {
    copies.emplace_back(weights, to / (plain + ".index.json"));
    for (const fs::path& shard : TensorSource::of_part(from, kind.stem).files()) {
      copies.emplace_back(shard, to / shard.filename());
    }
  }
  files.create_directories(to);
  for (const auto& [source, copy] : copies) copy_file(files, source, copy);
  for (const auto& [source, copy] : copies) compare(source, copy);
  files.sync_directory(to);
}

}  // namespace sdtune::model
