// The refusals of a real interpreter without packages are in tests/python/test_trackers.py.
#include "train/track/tracker_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/environment.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

ObserveOptions reporting_to(std::vector<std::string> names) {
  ObserveOptions options;
  options.report_to = std::move(names);
  return options;
}

// An interpreter whose reply is this text.
std::filesystem::path interpreter(const test::ScratchFolder& folder, const std::string& reply) {
  std::filesystem::path file = folder.write("python", "#!/bin/bash\necho '" + reply + "' >&3\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return file;
}

TEST(TrackerCheck, OnlyWandbMlflowAndTrackioNeedAProcess) {
  EXPECT_TRUE(side_trackers(reporting_to({"tensorboard"})).names.empty());
  EXPECT_TRUE(side_trackers(reporting_to({"none"})).names.empty());
  const SideTrackers two = side_trackers(reporting_to({"trackio", "tensorboard", "wandb"}));
  EXPECT_EQ(two.names, (std::vector<std::string>{"wandb", "trackio"}));
  EXPECT_FALSE(two.optional);
  const SideTrackers all = side_trackers(reporting_to({"all"}));
  EXPECT_EQ(all.names, (std::vector<std::string>{"wandb", "mlflow", "trackio"}));
  EXPECT_TRUE(all.optional);
}

TEST(TrackerCheck, TensorBoardIsWrittenForAllToo) {
  EXPECT_TRUE(reports_to_tensorboard(reporting_to({"wandb", "tensorboard"})));
  EXPECT_TRUE(reports_to_tensorboard(reporting_to({"all"})));
  EXPECT_FALSE(reports_to_tensorboard(reporting_to({"wandb"})));
  EXPECT_FALSE(reports_to_tensorboard(reporting_to({"none"})));
}

TEST(TrackerCheck, EachMissingPackageIsNamedAsPipCallsIt) {
  const test::ScratchFolder folder;
  const std::string python = interpreter(folder, R"({"missing": ["wandb", "mlflow"]})").string();
  const test::Environment given("SDTUNE_PYTHON", python);
  const std::vector<Problem> problems = tracker_problems(reporting_to({"wandb", "mlflow"}));
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].where, "report_to");
  EXPECT_EQ(problems[0].what, "wandb is not installed in " + python);
  EXPECT_NE(problems[1].hint.find("pip install mlflow-skinny"), std::string::npos);
}

TEST(TrackerCheck, WhatIsThereHasNoProblem) {
  const test::ScratchFolder folder;
  const test::Environment given("SDTUNE_PYTHON", interpreter(folder, R"({"missing": []})").string());
  EXPECT_TRUE(tracker_problems(reporting_to({"wandb"})).empty());
}

TEST(TrackerCheck, AllAndTensorBoardAskNobody) {
  const test::Environment nobody("SDTUNE_PYTHON", "/nowhere/python");
  EXPECT_TRUE(tracker_problems(reporting_to({"all"})).empty());
  EXPECT_TRUE(tracker_problems(reporting_to({"tensorboard"})).empty());
  const std::vector<Problem> problems = tracker_problems(reporting_to({"wandb"}));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].what.find("/nowhere/python cannot be started"), std::string::npos);
}

TEST(TrackerCheck, AnswersThatAreNoneNameTheInterpreter) {
  for (const char* reply : {"hello", "[1]", R"({"other": 1})", ""}) {
    const test::ScratchFolder folder;
    const test::Environment given("SDTUNE_PYTHON", interpreter(folder, reply).string());
    const std::vector<Problem> problems = tracker_problems(reporting_to({"wandb"}));
    ASSERT_EQ(problems.size(), 1U) << reply;
    EXPECT_NE(problems[0].what.find("does not run the script"), std::string::npos);
  }
}

}  // namespace
}  // namespace sdtune::train
