// Ranks with a shell script in the place of sdtune.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "model/files/file_system.h"
#include "tests/support/scratch_folder.h"
#include "train/prove/parts.h"
#include "train/prove/step_record.h"

namespace sdtune::train {
namespace {

// Of two ranks that end so, beside the record of one process.
PartResult result_of_ranks_that(const std::string& end) {
  const test::ScratchFolder folder;
  const std::filesystem::path program = folder.write("sdtune", "#!/bin/sh\n" + end + "\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const StopFlag stop;
  const PartStore store(real_file_system(), folder.path() / "proof", Json{{"sdtune", "1"}, {"device", "cpu"}});
  std::filesystem::create_directories(store.work());
  StepRecord record;
  record.tensors.emplace_back("losses", torch::zeros({1}));
  write_record(store.work() / "ranks_2_alone", record);
  return ranks_part({.program = program, .store = store, .steps = 4, .stop = stop});
}

TEST(RanksPart, IsLeftOutWhereMemoryDoesNotSuffice) {
  const PartResult result = result_of_ranks_that("echo CUDA out of memory; exit 4");
  EXPECT_EQ(result.status, PartStatus::kSkipped);
  EXPECT_THAT(result.reason, testing::HasSubstr("memory does not suffice here: exit code 4: CUDA out of memory"));
  EXPECT_EQ(result_of_ranks_that("exit 1").status, PartStatus::kFailed);  // the mutant: any other end is a failure
}

}  // namespace
}  // namespace sdtune::train
