// What several threads share while photos are read. scripts/sanitize.sh runs these with the thread sanitizer; they
// start threads of their own, so that there are several on a machine of one core too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/train/data/image_folder.h"
#include "train/data/decoded_photos.h"
#include "train/data/decoding_room.h"
#include "train/data/face_finder.h"
#include "train/data/photo_analysis.h"

namespace sdtune::train {
namespace {

constexpr std::size_t kThreads = 4;

// Calls `work` with the thread's number on every thread, and waits for all.
void on_threads(const std::function<void(std::size_t)>& work) {
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
}

class ReadingThreads : public ImageFolder {
 protected:
  void SetUp() override {
    ImageFolder::SetUp();
    for (int i = 0; i < kImages; ++i) image(name(i), static_cast<std::uint32_t>(i + 1), kSide, kSide);
  }
  static std::string name(int index) { return "photo" + std::to_string(index) + ".png"; }
  // Each thread reads the folder, which starts more threads where there are more cores.
  void read_on_threads(const PhotoVisitor& visitor) const {
    on_threads([&](std::size_t) { EXPECT_EQ(scan_photos(folder_, "a photo", false, visitor).photos.size(), kImages); });
  }

  static constexpr int kImages = 12;
  static constexpr std::int64_t kSide = 8;
  static constexpr std::int64_t kBytes = kSide * kSide * 3;
};

TEST_F(ReadingThreads, EveryDecodedPhotoIsKept) {
  CropRule rule;
  rule.resolution = kSide;
  DecodedPhotos photos(rule, model::Filter::kLanczos, /*shows_faces=*/false);
  const PhotoVisitor visitor{.keep = [&](const Photo& photo, const Image& image) {
    photos.keep(photo, image);
    EXPECT_NE(photos.find(photo.path), nullptr);
  }};
  read_on_threads(visitor);
  for (int i = 0; i < kImages; ++i) {
    ASSERT_NE(photos.find(folder_ / name(i)), nullptr);
    EXPECT_EQ(photos.find(folder_ / name(i))->resized.rgb,
              test_image(kSide, kSide, static_cast<std::uint32_t>(i + 1)).rgb);
  }
}

TEST_F(ReadingThreads, NoMoreIsKeptThanThereIsRoomFor) {
  CropRule rule;
  rule.resolution = kSide;
  DecodedPhotos photos(rule, model::Filter::kLanczos, /*shows_faces=*/false, /*max_bytes=*/3 * kBytes + kBytes / 2);
  const Image image = test_image(kSide, kSide);
  on_threads([&](std::size_t thread) {
    Photo photo;
    photo.width = photo.height = kSide;
    for (int i = 0; i < kImages; ++i) {
      photo.path = fmt::format("{}{}", thread, name(i));
      photos.keep(photo, image);
    }
  });
  int kept = 0;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    for (int i = 0; i < kImages; ++i) kept += photos.find(fmt::format("{}{}", thread, name(i))) != nullptr;
  }
  EXPECT_EQ(kept, 3);
}

// With sdtune-faces or, where it is not found, with the reason why no face was searched for.
TEST_F(ReadingThreads, EveryPhotoIsAnalysed) {
  PhotoAnalyzer analyzer("");
  const PhotoVisitor visitor{.examine = [&](Photo& photo, const Image& preview) {
    analyzer.examine(photo, preview);
    EXPECT_TRUE(photo.analysis->searched || !analyzer.trouble().empty());
  }};
  read_on_threads(visitor);
}

// Every thread throws; of an exception that leaves a thread the process would end.
TEST_F(ReadingThreads, MemoryThatRanOutIsToldToTheCaller) {
  const PhotoVisitor visitor{.keep = [](const Photo&, const Image&) { throw std::bad_alloc(); }};
  EXPECT_THROW(scan_photos(folder_, "a photo", false, visitor), std::bad_alloc);
}

TEST(DecodingRoom, HoldsWhatFitsAndALargerPhotoAlone) {
  for (const auto& [bytes, most] : {std::pair{60, 1}, {50, 2}, {1000, 1}}) {
    DecodingRoom room(100);
    std::atomic<int> inside = 0, seen = 0;
    on_threads([&, each = bytes, allowed = most](std::size_t) {
      for (int i = 0; i < 50; ++i) {
        const DecodingRoom::Share share(room, each);
        EXPECT_LE(++inside, allowed);
        ++seen;
        std::this_thread::yield();
        --inside;
      }
    });
    EXPECT_EQ(seen.load(), static_cast<int>(kThreads) * 50);
  }
  EXPECT_GE(DecodingRoom::of_machine(), std::int64_t{1} << 30);
}

// The program numbers its answers; each belongs to one call.
TEST(ReadingFaces, OneProgramAnswersSeveralThreads) {
  const test::ScratchFolder scratch;
  const std::filesystem::path program = scratch.write("faces",
                                                      "#!/bin/sh\necho '{\"ready\": true}'\n"
                                                      "while read -r header; do\nhead -c 6 > /dev/null\n"
                                                      "id=$(echo \"$header\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')\n"
                                                      "echo '{\"faces\": [{\"left\": 0, \"top\": 0, \"width\": '$id', "
                                                      "\"height\": 1}], \"id\": '$id'}'\ndone\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  FaceFinder finder({}, {}, {program});
  constexpr std::size_t kCalls = 5;
  std::vector<std::vector<double>> widths(kThreads);
  on_threads([&](std::size_t thread) {
    const Image image{2, 1, std::vector<std::uint8_t>(6)};
    for (std::size_t i = 0; i < kCalls; ++i) widths[thread].push_back(finder.find(image).faces.at(0).width);
  });
  std::set<double> seen;
  for (const std::vector<double>& of_thread : widths) seen.insert(of_thread.begin(), of_thread.end());
  EXPECT_EQ(seen.size(), kThreads * kCalls);
  EXPECT_EQ(*seen.rbegin(), static_cast<double>(kThreads * kCalls));
}

}  // namespace
}  // namespace sdtune::train
