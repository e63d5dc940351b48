#include "model/files/atomic_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "model/base/error.h"
#include "tests/support/faulty_file_system.h"

namespace sdtune {
namespace {

namespace fs = std::filesystem;

class WholeFolder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(scratch_); }
  void TearDown() override { fs::remove_all(scratch_); }
  void write(const std::string& content, bool fails = false) const {
    write_folder_atomically(real_file_system(), scratch_ / "folder", [&](const fs::path& partial) {
      write_file_atomically(real_file_system(), partial / "file", content);
      if (fails) throw WeightError("file", "is not as it should be");
    });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(scratch_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

  fs::path scratch_ = fs::path(testing::TempDir()) / "whole_folder";
};

TEST_F(WholeFolder, ReplacesWhatWasThere) {
  write("old");
  write("new");
  EXPECT_EQ(read_file(scratch_ / "folder" / "file"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"folder"});
}

TEST_F(WholeFolder, StaysAsItWasWhenTheWriterIsNotContent) {
  EXPECT_THROW(write("new", true), WeightError);
  EXPECT_TRUE(names().empty());
  write("old");
  EXPECT_THROW(write("new", true), WeightError);
  EXPECT_EQ(read_file(scratch_ / "folder" / "file"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"folder"});
}

TEST_F(WholeFolder, ForgetsAWritingThatWasKilled) {
  fs::create_directories(scratch_ / ".folder.partial" / "stale");
  write("new");
  EXPECT_FALSE(fs::exists(scratch_ / "folder" / "stale"));
}

// Killed between its two renames, when the old folder has stepped aside and the new one has no name yet.
TEST_F(WholeFolder, RemovesTheOldOneOfAReplacementThatWasKilled) {
  write("old");
  fs::rename(scratch_ / "folder", scratch_ / ".folder.old");
  fs::create_directories(scratch_ / ".folder.partial");
  EXPECT_THROW(write("new", true), WeightError);
  EXPECT_EQ(read_file(scratch_ / ".folder.old" / "file"), "old") << "nothing has taken its place";
  write("new");
  EXPECT_EQ(read_file(scratch_ / "folder" / "file"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"folder"});
}

// Removes no tree, as NFS while another program reads a file in it.
class TreeKeepingFileSystem : public test::FaultyFileSystem {
 public:
  void remove_tree(const fs::path& path) override {
    throw StorageError(path.string(), "cannot remove: Directory not empty");
  }
};

TEST_F(WholeFolder, IsReplacedThoughTheOldOneCannotBeRemoved) {
  write("old");
  TreeKeepingFileSystem files;
  write_folder_atomically(files, scratch_ / "folder",
                          [&](const fs::path& partial) { write_file_atomically(files, partial / "file", "new"); });
  EXPECT_EQ(read_file(scratch_ / "folder" / "file"), "new");
  EXPECT_EQ(read_file(scratch_ / ".folder.old" / "file"), "old");
  write("newest");
  EXPECT_EQ(read_file(scratch_ / "folder" / "file"), "newest");
  EXPECT_EQ(names(), std::vector<std::string>{"folder"});
}

TEST_F(WholeFolder, NamesWhatAKillLeavesBesideIt) {
  const std::vector<fs::path> expected = {scratch_ / ".folder.partial", scratch_ / ".folder.old"};
  EXPECT_EQ(left_by_killed_writings(scratch_ / "folder"), expected);
  EXPECT_EQ(left_by_killed_writings(scratch_ / "folder" / ""), expected);
}

}  // namespace
}  // namespace sdtune
