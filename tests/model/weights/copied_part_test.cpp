#include "model/weights/copied_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

using PartChange = std::function<void(std::vector<std::byte>&)>;

// Stores something else than it is given, in files of one name, and says nothing: a faulty disk.
class CopiedPartDisk : public test::FaultyFileSystem {
 public:
  CopiedPartDisk(std::string name, PartChange change) : name_(std::move(name)), change_(std::move(change)) {}

  std::unique_ptr<OutputFile> create(const fs::path& path) override {
    std::unique_ptr<OutputFile> file = test::FaultyFileSystem::create(path);
    if (path.filename() != name_) return file;
    return std::make_unique<ChangedFile>(std::move(file), change_);
  }

 private:
  class ChangedFile : public OutputFile {
   public:
    ChangedFile(std::unique_ptr<OutputFile> file, PartChange change)
        : file_(std::move(file)), change_(std::move(change)) {}
    void write(std::span<const std::byte> bytes) override {
      std::vector<std::byte> stored(bytes.begin(), bytes.end());
      change_(stored);
      file_->write(stored);
    }
    void sync() override { file_->sync(); }
    void close() override { file_->close(); }

   private:
    std::unique_ptr<OutputFile> file_;
    PartChange change_;
  };

  std::string name_;
  PartChange change_;
};

class CopiedPart : public ::testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("from/config.json", "{}");
    scratch_.write("from/diffusion_pytorch_model.fp16.safetensors", std::string(10'000, 'w'));
  }
  // What the copy says, "" where it is made.
  std::string fault(FileSystem& files) const {
    try {
      copy_part(files, scratch_.path() / "from", to(), kUNetPart);
    } catch (const StorageError& error) {
      return error.problems().front().line();
    }
    return "";
  }
  fs::path to() const { return scratch_.path() / "to"; }

  test::ScratchFolder scratch_;
};

TEST_F(CopiedPart, IsByteForByteTheVariantWithoutItsName) {
  EXPECT_EQ(fault(real_file_system()), "");
  EXPECT_EQ(read_file(to() / "config.json"), "{}");
  EXPECT_EQ(read_file(to() / "diffusion_pytorch_model.safetensors"), std::string(10'000, 'w'));
}

TEST_F(CopiedPart, ThatADiskStoredOtherwiseIsRefused) {
  const std::pair<const char*, PartChange> changes[] = {
      {"another bit", [](std::vector<std::byte>& bytes) { bytes.back() ^= std::byte{1}; }},
      {"the end is missing", [](std::vector<std::byte>& bytes) { bytes.pop_back(); }},
      {"more than there was", [](std::vector<std::byte>& bytes) { bytes.push_back(bytes.back()); }},
      {"nothing at all", [](std::vector<std::byte>& bytes) { bytes.clear(); }}};
  for (const std::string name : {"config.json", "diffusion_pytorch_model.safetensors"}) {
    for (const auto& [what, change] : changes) {
      CopiedPartDisk files(name, change);
      EXPECT_THAT(fault(files), AllOf(HasSubstr((to() / name).string()), HasSubstr("it is not what was written")))
          << what;
    }
  }
}

}  // namespace
}  // namespace sdtune::model
