#include "train/checkpoint/hashing_file_system.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/base/error.h"
#include "model/files/sha256.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Below and above what a thread of its own hashes.
std::string piece(std::size_t size, char first) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + i % 89);
  return text;
}

TEST(HashingFileSystem, HashesPiecesOfEverySizeInTheirOrder) {
  const test::ScratchFolder scratch;
  HashingFileSystem files(real_file_system(), scratch.path());
  const std::unique_ptr<OutputFile> file = files.create(scratch.path() / "a");
  std::string whole;
  for (const std::size_t size : {3, 1 << 20, 17, (5 << 20) + 1, 0, 3 << 20}) {
    const std::string text = piece(size, static_cast<char>(size % 7));
    file->write(bytes_of(text));
    whole += text;
  }
  file->sync();
  file->close();
  ASSERT_EQ(files.manifest().files.size(), 1u);
  EXPECT_EQ(files.manifest().files[0].size, whole.size());
  EXPECT_EQ(files.manifest().files[0].sha256, sha256_hex(whole));
  EXPECT_EQ(sha256_of_file(scratch.path() / "a"), sha256_hex(whole));
  whole[whole.size() / 2] ^= 1;
  EXPECT_NE(files.manifest().files[0].sha256, sha256_hex(whole));
}

class FullDisk : public OutputFile {
 public:
  void write(std::span<const std::byte>) override { throw StorageError("a", "cannot write: full"); }
  void sync() override {}
  void close() override {}
};

class FilesOnAFullDisk : public HashingFileSystem {
 public:
  using HashingFileSystem::HashingFileSystem;
  std::unique_ptr<OutputFile> create(const std::filesystem::path&) override { return std::make_unique<FullDisk>(); }
};

TEST(HashingFileSystem, AFileThatCouldNotBeWrittenIsNotListed) {
  const test::ScratchFolder scratch;
  FilesOnAFullDisk full(real_file_system(), scratch.path());
  HashingFileSystem files(full, scratch.path());
  for (const std::size_t size : {8, 4 << 20}) {
    const std::unique_ptr<OutputFile> file = files.create(scratch.path() / "a");
    const std::string text = piece(size, 'a');
    EXPECT_THROW(file->write(bytes_of(text)), StorageError);
  }
  EXPECT_TRUE(files.manifest().files.empty());
}

}  // namespace
}  // namespace sdtune::train
