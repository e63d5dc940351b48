#include "train/prove/part_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/base/error.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

using testing::HasSubstr;

const Json kIdentity = {{"sdtune", "1"}, {"device", "NVIDIA L4"}};

PartResult found_part() {
  PartResult result;
  result.name = "ranks";
  result.status = PartStatus::kFailed;
  result.reason = "loss is outside its bar";
  result.checks = {{"loss", 0.25, {}, 0.1, "of a test"}, {"told", 7, {}, {}, ""}, {"bytes", 3, 1, 5, ""}};
  result.numbers = {{"backend", "nccl"}};
  result.images = {"work/a.png"};
  result.seconds = 1.5;
  result.peak_bytes = 12345678901;
  return result;
}

std::string refusal(const std::filesystem::path& root, const Json& identity) {
  try {
    const PartStore store(real_file_system(), root, identity);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(PartStore, KeepsWhatAPartFoundForTheNextCall) {
  const test::ScratchFolder folder;
  const PartStore first(real_file_system(), folder.path(), kIdentity);
  EXPECT_FALSE(first.find("ranks"));
  first.keep(found_part());
  const PartStore second(real_file_system(), folder.path(), kIdentity);
  const std::optional<PartResult> found = second.find("ranks");
  ASSERT_TRUE(found);
  EXPECT_EQ(part_json(*found).dump(), part_json(found_part()).dump());
  EXPECT_FALSE(second.find("kernels"));
}

TEST(PartStore, TriesASkippedPartAgain) {
  const test::ScratchFolder folder;
  const PartStore store(real_file_system(), folder.path(), kIdentity);
  store.keep(skipped_part("diffusers", "is not there"));
  EXPECT_FALSE(store.find("diffusers")) << "what was missing may be there now";
  store.keep(failed_part("plan", "too slow"));
  EXPECT_TRUE(store.find("plan"));
}

TEST(PartStore, RefusesAnotherDeviceByName) {
  const test::ScratchFolder folder;
  { const PartStore store(real_file_system(), folder.path(), kIdentity); }
  EXPECT_EQ(refusal(folder.path(), kIdentity), "");
  EXPECT_THAT(refusal(folder.path(), {{"sdtune", "1"}, {"device", "NVIDIA T4"}}),
              HasSubstr("holds the proof of another device (there: NVIDIA L4; now: NVIDIA T4)"));
  EXPECT_THAT(refusal(folder.path(), {{"sdtune", "1"}, {"device", "NVIDIA L4"}, {"driver", "580"}}),
              HasSubstr("another driver (there: nothing; now: 580)"));
}

TEST(PartStore, RefusesAFolderOfSomethingElse) {
  const test::ScratchFolder folder;
  EXPECT_EQ(refusal(folder.path(), kIdentity), "") << "an empty one will do";
  const test::ScratchFolder other;
  write_file_atomically(real_file_system(), other.path() / "a.txt", "mine");
  EXPECT_THAT(refusal(other.path(), kIdentity), HasSubstr("holds something else than a proof"));
}

TEST(PartStore, NamesADamagedResult) {
  const test::ScratchFolder folder;
  const PartStore store(real_file_system(), folder.path(), kIdentity);
  write_file_atomically(real_file_system(), folder.path() / "parts" / "plan.json",
                        R"({"name": "plan", "status": "good"})");
  EXPECT_THROW(store.find("plan"), WeightError);
}

}  // namespace
}  // namespace sdtune::train
