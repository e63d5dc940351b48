// Ranks as threads, each with a folder of its own, or two with one.
#include "train/prepare/shared_class_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "model/base/error.h"
#include "tests/support/gloo_ranks.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::run_ranks;

class SharedClassImages : public testing::Test {
 protected:
  fs::path folder_of(std::int64_t disk) {
    fs::path folder = scratch_.path() / ("disk" + std::to_string(disk));
    fs::create_directories(folder);
    return folder;
  }
  void write(std::int64_t disk, const std::string& name, const std::string& content) {
    write_file_atomically(real_file_system(), folder_of(disk) / name, content);
  }
  std::string content(std::int64_t disk, const std::string& name) { return read_file(folder_of(disk) / name); }
  std::int64_t count(std::int64_t disk) {
    return std::distance(fs::directory_iterator(folder_of(disk)), fs::directory_iterator());
  }
  // Rank 0 found "a", which the user put there, and made "b"; rank 1 made "c".
  std::vector<std::string> share(std::int64_t ranks, const std::vector<std::int64_t>& disks) {
    return run_ranks(ranks, {}, [&](ProcessGroup& group) {
      const fs::path folder = folder_of(disks[static_cast<std::size_t>(group.rank())]);
      const std::int64_t made_by_first = ranks == 2 ? 2 : 3;
      std::vector<fs::path> files{folder / "a", folder / "c"};
      std::vector<std::int64_t> missing{1, made_by_first};
      if (ranks == 3) {
        files.push_back(folder / "d");
        missing.insert(missing.begin() + 1, 2);
      }
      files.push_back(folder / "b");
      share_class_images(group, {files, missing, 1}, {torch::kCPU, folder, folder, 20s});
    });
  }
  void write_own() {
    write(0, "a", "A");
    write(0, "b", "B");
    write(1, "c", "C");
  }

  test::ScratchFolder scratch_;
};

TEST_F(SharedClassImages, ReachEveryDisk) {
  write_own();
  write(1, "b", "half of B");
  EXPECT_THAT(share(2, {0, 1}), testing::Each(""));
  for (const std::int64_t disk : {0, 1}) {
    EXPECT_EQ(content(disk, "a") + content(disk, "b") + content(disk, "c"), "ABC");
    EXPECT_EQ(count(disk), 3) << "something is left over";
  }
}

TEST_F(SharedClassImages, AreWrittenOnceOnADiskOfTwoRanks) {
  write_own();
  write(1, "d", "D");
  EXPECT_THAT(share(3, {0, 1, 1}), testing::Each(""));
  for (const std::int64_t disk : {0, 1}) {
    EXPECT_EQ(content(disk, "a") + content(disk, "b") + content(disk, "c") + content(disk, "d"), "ABCD");
    EXPECT_EQ(count(disk), 4) << "something is left over";
  }
}

TEST_F(SharedClassImages, OfOneFolderAreLeftAlone) {
  write_own();
  write(0, "c", "C");
  const fs::file_time_type before = fs::last_write_time(folder_of(0) / "c");
  EXPECT_THAT(share(2, {0, 0}), testing::Each(""));
  EXPECT_EQ(fs::last_write_time(folder_of(0) / "c"), before);
}

TEST_F(SharedClassImages, OfTheUserAreNeverReplaced) {
  write_own();
  write(1, "a", "another A");
  const std::string line = (folder_of(1) / "a").string() + ": rank 1 (";
  const std::vector<std::string> errors = share(2, {0, 1});
  EXPECT_THAT(errors, testing::Each(testing::StartsWith(line)));
  EXPECT_THAT(errors, testing::Each(testing::HasSubstr("has another file of this name than rank 0")));
  EXPECT_EQ(content(1, "a"), "another A");
}

TEST_F(SharedClassImages, ArePlannedByTheFirstRank) {
  std::mutex mutex;
  std::vector<ClassImagePlan> plans(2);
  const std::vector<std::string> errors = run_ranks(2, {}, [&](ProcessGroup& group) {
    const ClassImagePlan plan = shared_plan(group, {"a photo", folder_of(0), 3}, {"a photo", 1, "hash", 64, {}});
    const std::lock_guard lock(mutex);
    plans[static_cast<std::size_t>(group.rank())] = plan;
  });
  EXPECT_THAT(errors, testing::Each(""));
  EXPECT_EQ(plans[0].files.size(), 3u);
  EXPECT_EQ(plans[0].files, plans[1].files);
  EXPECT_EQ(plans[0].missing, plans[1].missing);
}

}  // namespace
}  // namespace sdtune::train
