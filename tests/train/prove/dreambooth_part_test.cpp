// DreamBooth and its plan with a shell script in the place of sdtune: which processes count, and what is asked of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>  // parts.h alone does not say that the parts link LibTorch (scripts/torch_free_tests.py)

#include <filesystem>
#include <string>

#include "model/files/file_system.h"
#include "tests/support/scratch_folder.h"
#include "train/prove/parts.h"

namespace sdtune::train {
namespace {

using testing::HasSubstr;

// Writes what a run of four steps leaves, after its words.
constexpr const char* kFakeProgram = R"(#!/bin/sh
if [ "$1" = plan ]; then
  echo '{"cpu": {"peak_bytes": 7}, "this_machine": {"total_s": 1000000}}'
  exit 0
fi
cd "$(dirname "$0")/proof/work"
echo "$@" >> words
mkdir -p dreambooth
echo '{"step": 0, "loss": 1}' > dreambooth/validation.jsonl
echo '{"step": 4, "loss": 0.5}' >> dreambooth/validation.jsonl
echo '{"step": 4, "attempt": 9, "max_memory_bytes": 7}' >> dreambooth/metrics.jsonl
)";

class DreamboothOfAShell : public testing::Test {
 protected:
  DreamboothOfAShell() {
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
    std::filesystem::create_directories(work() / "dreambooth" / "checkpoints");
  }
  std::filesystem::path work() const { return store_.work(); }
  std::string words() const { return read_file(work() / "words"); }
  void write_work(const std::string& name, const std::string& text) const {
    folder_.write("proof/work/dreambooth/" + name, text);
  }
  // Its time beside a plan that asks for far more.
  Check time_of_plan() const {
    const PartResult result = plan_part(context_);
    for (const Check& check : result.checks) {
      if (check.name == "time of the run / planned") return check;
    }
    ADD_FAILURE() << result.reason;
    return {};
  }

  test::ScratchFolder folder_;
  std::filesystem::path program_ = folder_.write("sdtune", kFakeProgram);
  StopFlag stop_;
  PartStore store_{real_file_system(), folder_.path() / "proof", Json{{"sdtune", "1"}, {"device", "cpu"}}};
  ProveContext context_{.program = program_, .store = store_, .steps = 4, .stop = stop_};
};

TEST_F(DreamboothOfAShell, StartsAnewWhereASaveWasKilled) {
  write_work("checkpoints/step-00000002.tmp/weights.safetensors", "");
  const PartResult result = dreambooth_part(context_);
  EXPECT_EQ(result.status, PartStatus::kPassed) << result.reason;
  EXPECT_THAT(words(), HasSubstr("--overwrite"));
  EXPECT_EQ(result.numbers.at("processes").get<int>(), 1);
  store_.keep(result);
  const Check time = time_of_plan();
  EXPECT_TRUE(time.has_bar());
  EXPECT_FALSE(time.passed()) << "far less than planned";
}

TEST_F(DreamboothOfAShell, CountsTheProcessesOfAKilledCall) {
  write_work("checkpoints/step-00000002/manifest.json", "{}");
  write_work("run.json",
             R"({"attempts": [{"attempt": 1, "started": 1000, "ended": 1040, "first_step": 0, "last_step": 2},
                                          {"attempt": 2, "started": 1050, "first_step": 2}]})");
  write_work("metrics.jsonl", "{\"step\": 3, \"attempt\": 2, \"time\": 1060}\n");
  const PartResult result = dreambooth_part(context_);
  EXPECT_EQ(result.status, PartStatus::kPassed) << result.reason;
  EXPECT_THAT(words(), HasSubstr("--resume-from-checkpoint latest"));
  EXPECT_EQ(result.numbers.at("processes").get<int>(), 3);
  EXPECT_GE(result.numbers.at("run_seconds").get<double>(), 50) << "40 of the first and 10 of the second";
  store_.keep(result);
  EXPECT_FALSE(time_of_plan().has_bar());
}

}  // namespace
}  // namespace sdtune::train
