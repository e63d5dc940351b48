// Ranks as threads; a disk is a folder.
#include "train/dist/send_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/files/sha256.h"
#include "tests/support/gloo_ranks.h"
#include "tests/support/scratch_folder.h"
#include "train/dist/stop_request.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::run_ranks;

constexpr std::uint64_t kPiece = 1000;  // bytes

class SendFiles : public testing::Test {
 protected:
  SendFiles() {
    for (const std::size_t size : {0, 1, 1000, 2500}) {
      const std::string name = "folder/" + std::to_string(size);
      std::string content(size, 'x');
      for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * i / 7);
      create_parent_folder(real_file_system(), source() / name);
      write_file_atomically(real_file_system(), source() / name, content);
      files_.push_back({name, size, sha256_hex(content)});
    }
  }
  fs::path source() const { return scratch_.path() / "source"; }
  fs::path target(std::int64_t disk) const { return scratch_.path() / ("disk" + std::to_string(disk)); }
  FileExchange exchange(std::int64_t disk) const { return {torch::kCPU, source(), target(disk), 20s, nullptr, kPiece}; }
  bool is_whole(std::int64_t disk) const {
    return std::all_of(files_.begin(), files_.end(), [&](const SentFile& file) {
      return is_file(target(disk) / file.name) && sha256_of_file(target(disk) / file.name) == file.sha256;
    });
  }

  test::ScratchFolder scratch_;
  std::vector<SentFile> files_;
};

TEST_F(SendFiles, ArriveWholeInPieces) {
  const std::vector<std::string> errors = run_ranks(3, {}, [&](ProcessGroup& group) {
    std::vector<std::size_t> lacking;
    if (group.rank() == 1) lacking = {0, 1, 2, 3};
    if (!send_files(group, real_file_system(), files_, lacking, exchange(group.rank()))) {
      throw std::runtime_error("nothing was sent");
    }
    if (send_files(group, real_file_system(), files_, {}, exchange(group.rank()))) {
      throw std::runtime_error("nobody lacks anything");
    }
  });
  EXPECT_THAT(errors, testing::Each(""));
  EXPECT_TRUE(is_whole(1));
  EXPECT_FALSE(fs::exists(target(2)));
}

TEST_F(SendFiles, OfOtherContentThanListedAreRefusedOnEveryRank) {
  write_file_atomically(real_file_system(), source() / files_[3].name, std::string(2500, 'y'));
  const std::vector<std::string> errors = run_ranks(2, {}, [&](ProcessGroup& group) {
    send_files(group, real_file_system(), files_,
               group.is_first() ? std::vector<std::size_t>() : std::vector<std::size_t>{3}, exchange(1));
  });
  EXPECT_THAT(errors, testing::Each(testing::HasSubstr("arrived at rank 1 (")));
  EXPECT_TRUE(fs::is_empty(target(1) / "folder")) << "a file that is not whole is left";
}

TEST_F(SendFiles, ThatTheOwnerLostAreNamedOnEveryRank) {
  fs::remove(source() / files_[2].name);
  const std::vector<std::string> errors = run_ranks(2, {}, [&](ProcessGroup& group) {
    send_files(group, real_file_system(), files_,
               group.is_first() ? std::vector<std::size_t>() : std::vector<std::size_t>{2}, exchange(1));
  });
  EXPECT_THAT(errors, testing::Each(testing::StartsWith((source() / files_[2].name).string() + ": cannot be read")));
}

TEST_F(SendFiles, ThatCannotBeWrittenEndEveryRank) {
  write_file_atomically(real_file_system(), target(1), "a file in the place of the folder");
  const std::vector<std::string> errors = run_ranks(3, {}, [&](ProcessGroup& group) {
    send_files(group, real_file_system(), files_,
               group.is_first() ? std::vector<std::size_t>() : std::vector<std::size_t>{1}, exchange(group.rank()));
  });
  EXPECT_THAT(errors, testing::Each(testing::HasSubstr("disk1")));
}

TEST_F(SendFiles, StopOnEveryRank) {
  const std::vector<std::string> errors = run_ranks(2, {}, [&](ProcessGroup& group) {
    StopFlag stop;
    if (group.rank() == 1) stop.request(SIGTERM);
    FileExchange with_stop = exchange(1);
    with_stop.stop = &stop;
    try {
      send_files(group, real_file_system(), files_,
                 group.is_first() ? std::vector<std::size_t>{} : std::vector<std::size_t>{3}, with_stop);
    } catch (const StopRequest& request) {
      throw std::runtime_error("stopped by " + std::to_string(request.signal));
    }
  });
  EXPECT_THAT(errors, testing::Each("bug: stopped by 15"));
  EXPECT_TRUE(fs::is_empty(target(1) / "folder"));
}

}  // namespace
}  // namespace sdtune::train
