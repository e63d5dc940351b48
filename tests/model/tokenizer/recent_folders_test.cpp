#include "model/tokenizer/recent_folders.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace sdtune {
namespace {

namespace fs = std::filesystem;

class RecentFoldersFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ("recent_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("a", "one");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // As if it had been written an hour ago.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  FolderStamp stamp() const { return stamp_of_files(folder_, {"a", "b"}); }

  fs::path folder_;
};

TEST_F(RecentFoldersFiles, AStampTellsEachChange) {
  const FolderStamp first = stamp();
  EXPECT_EQ(stamp(), first);
  write("b", "two");
  const FolderStamp with_b = stamp();
  EXPECT_NE(with_b, first);
  fs::last_write_time(folder_ / "a", fs::file_time_type::clock::now() - std::chrono::hours(2));
  const FolderStamp older = stamp();
  EXPECT_NE(older, with_b);
  const auto time = fs::last_write_time(folder_ / "a");
  std::ofstream(folder_ / "a") << "longer";
  fs::last_write_time(folder_ / "a", time);
  EXPECT_NE(stamp(), older);
  fs::remove(folder_ / "b");
  EXPECT_NE(stamp(), with_b);
}

TEST_F(RecentFoldersFiles, ReplacedByAnEqualFileIsAnotherFile) {
  const FolderStamp first = stamp();
  write("new", "eno");
  fs::last_write_time(folder_ / "new", fs::last_write_time(folder_ / "a"));
  fs::rename(folder_ / "new", folder_ / "a");
  EXPECT_NE(stamp(), first);
}

TEST_F(RecentFoldersFiles, FindsWhatIsUnchangedAndKeepsTheLast) {
  RecentFolders<int> recent(2);
  EXPECT_EQ(recent.find("x", stamp()), nullptr);
  recent.keep("x", stamp(), std::make_shared<const int>(1));
  recent.keep("y", stamp(), std::make_shared<const int>(2));
  ASSERT_NE(recent.find("x", stamp()), nullptr);
  EXPECT_EQ(*recent.find("x", stamp()), 1);
  recent.keep("y", stamp(), std::make_shared<const int>(3));  // takes the place of its own
  EXPECT_EQ(*recent.find("y", stamp()), 3);
  EXPECT_EQ(*recent.find("x", stamp()), 1);
  recent.keep("z", stamp(), std::make_shared<const int>(4));
  EXPECT_EQ(recent.find("x", stamp()), nullptr);
  write("a", "another");
  EXPECT_EQ(recent.find("z", stamp()), nullptr);
}

TEST_F(RecentFoldersFiles, WhatHasJustChangedIsNotKept) {
  std::ofstream(folder_ / "a") << "two";
  RecentFolders<int> recent(2);
  recent.keep("x", stamp(), std::make_shared<const int>(1));
  EXPECT_EQ(recent.find("x", stamp()), nullptr);
}

}  // namespace
}  // namespace sdtune
