#include "train/checkpoint/hashing_file_system.h"

#include <future>
#include <utility>

#include "model/files/sha256.h"

namespace sdtune::train {

namespace {

constexpr std::size_t kWorthAThread = std::size_t{1} << 20;  // bytes; half a millisecond of hashing
constexpr std::launch kThreadOrLater = std::launch::async | std::launch::deferred;  // where no thread can be made

}  // namespace

class HashingFileSystem::HashingFile : public OutputFile {
 public:
  HashingFile(std::unique_ptr<OutputFile> inner, Manifest& manifest, std::string name)
      : inner_(std::move(inner)), manifest_(manifest), name_(std::move(name)) {}

  void write(std::span<const std::byte> bytes) override {
    const auto policy = bytes.size() < kWorthAThread ? std::launch::deferred : kThreadOrLater;
    std::future<void> hashed = std::async(policy, [&] { hash_.update(bytes); });  // meanwhile
    inner_->write(bytes);
    hashed.get();
    size_ += bytes.size();
  }
  void sync() override { inner_->sync(); }
  void close() override {
    inner_->close();
    manifest_.files.push_back({name_, size_, hash_.hex_digest()});
  }

 private:
  std::unique_ptr<OutputFile> inner_;
  Manifest& manifest_;
  std::string name_;
  Sha256 hash_;
  std::uint64_t size_ = 0;
};

HashingFileSystem::HashingFileSystem(FileSystem& inner, std::filesystem::path folder)
    : inner_(inner), folder_(std::move(folder)) {}

std::unique_ptr<OutputFile> HashingFileSystem::create(const std::filesystem::path& path) {
  return std::make_unique<HashingFile>(inner_.create(path), manifest_, path.filename().string());
}

void HashingFileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  inner_.rename(from, to);
  for (ManifestEntry& entry : manifest_.files) {
    if (folder_ / entry.name == from) entry.name = to.filename().string();
  }
}

void HashingFileSystem::unlink(const std::filesystem::path& path) {
  inner_.unlink(path);
  std::erase_if(manifest_.files, [&](const ManifestEntry& entry) { return folder_ / entry.name == path; });
}

}  // namespace sdtune::train
