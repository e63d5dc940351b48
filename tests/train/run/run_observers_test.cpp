#include "train/run/run_observers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

class WarningsHeard final : public Observer {
 public:
  void on_warning(const Problem& problem) override { lines.push_back(problem.line()); }
  std::vector<std::string> lines;
};

// metrics.jsonl is a folder: a warning of an observer that is not the caller's.
TEST(RunObservers, TellTheReportWhatOneOfThemWarnsOf) {
  const test::ScratchFolder scratch;
  std::filesystem::create_directories(scratch.path() / "metrics.jsonl");
  TrainConfig config;
  config.run.output = scratch.path().string();
  config.observe.report_to = {"none"};
  WarningsHeard caller;
  const RunObservers observers(config, {&caller}, {}, /*is_first=*/true, /*started=*/1000);
  RunSummary summary;
  summary.output = scratch.path();
  tell(observers.all(), &Observer::on_start, summary);
  tell(observers.all(), &Observer::on_end, EndEvent{RunEnd::kFailed});
  const std::string cause = "training continues without these lines";
  ASSERT_FALSE(caller.lines.empty());
  EXPECT_THAT(caller.lines.front(), testing::HasSubstr(cause));
  EXPECT_THAT(read_file(scratch.path() / "report.html"), testing::HasSubstr(cause));
}

TEST(RunObservers, AreNoneOnOtherRanks) {
  WarningsHeard caller;
  EXPECT_TRUE(RunObservers(TrainConfig(), {&caller}, {}, /*is_first=*/false, /*started=*/1000).all().empty());
}

}  // namespace
}  // namespace sdtune::train
