// What a real server gets is in tests/python/test_notify.py.
#include "train/track/notify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/environment.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

constexpr const char* kSecret = "https://hooks.example/T000/secret";

TEST(NotifyProblems, AnAddressIsHttpOrHttpsWithAHostAndWithoutSpaces) {
  for (const char* fine : {"", kSecret, "http://127.0.0.1:8000/x?y=1"})
    EXPECT_TRUE(notify_problems(fine).empty()) << fine;
  for (const char* wrong : {"hooks.example/secret", "ftp://hooks.example/secret", "https://", "https:///secret",
                            "https://a b/secret", "https://a/secret\n", "HTTPS//secret"}) {
    const std::vector<Problem> problems = notify_problems(wrong);
    ASSERT_EQ(problems.size(), 1U) << wrong;
    EXPECT_EQ(problems[0].where, "notify");
    EXPECT_EQ(problems[0].line().find("secret"), std::string::npos) << "the address is a secret";
  }
}

// A notifier whose interpreter is a shell script.
class RunNotifierTest : public testing::Test {
 protected:
  RunNotifierTest()
      : record_("RECORD", folder_.path().string()), python_("SDTUNE_PYTHON", (folder_.path() / "python").string()) {}

  RunNotifier notifier(const std::string& script, const std::string& url = kSecret) {
    const std::filesystem::path file = folder_.write("python", "#!/bin/bash\n" + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return {url, folder_.path() / "me", [this](const Problem& problem) { said_.push_back(problem.line()); }};
  }
  std::vector<Json> posted() const {
    std::ifstream file(folder_.path() / "lines");
    std::vector<Json> found;
    for (std::string line; std::getline(file, line);) found.push_back(Json::parse(line));
    return found;
  }

  static constexpr const char* kRecorder =
      R"(read -r line <&3; echo "$line" >> "$RECORD/lines"; echo '{"fault":""}' >&3)";
  test::ScratchFolder folder_;
  test::Environment record_, python_;
  std::vector<std::string> said_;
};

TEST_F(RunNotifierTest, TellsStartAndEndWithTheLastStep) {
  RunNotifier notifier = this->notifier(kRecorder);
  RunSummary summary;
  summary.total_steps = 10;
  summary.attempt = 2;
  summary.first_step = 4;
  notifier.on_start(summary);
  StepEvent step;
  step.step = 5;
  step.loss = 0.125;
  notifier.on_step(step);
  notifier.finish(0, "all steps are done", false);
  const std::vector<Json> lines = posted();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["url"], kSecret);
  EXPECT_EQ(lines[0]["payload"]["event"], "start");
  EXPECT_EQ(lines[0]["payload"]["step"], 4);
  EXPECT_TRUE(lines[0]["payload"]["exit_code"].is_null());
  const Json& end = lines[1]["payload"];
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["step"], 5);
  EXPECT_EQ(end["loss"], 0.125);
  EXPECT_EQ(end["attempt"], 2);
  EXPECT_EQ(end["exit_code"], 0);
  EXPECT_EQ(end["cause"], "all steps are done");
  EXPECT_TRUE(said_.empty());
}

TEST_F(RunNotifierTest, AFailureBeforeTheStartIsToldToo) {
  RunNotifier notifier = this->notifier(kRecorder);
  notifier.finish(2, "images: there is no photo", true);
  ASSERT_EQ(posted().size(), 1U);
  EXPECT_EQ(posted()[0]["payload"]["event"], "failure");
  for (const char* unknown : {"step", "total_steps", "attempt", "loss"})
    EXPECT_TRUE(posted()[0]["payload"][unknown].is_null()) << unknown;
}

TEST_F(RunNotifierTest, FaultsAreWarningsWithoutTheAddress) {
  RunNotifier refused = notifier(R"(read -r line <&3; echo '{"fault":"the server answers with HTTP 404"}' >&3)");
  refused.finish(0, "done", false);
  RunNotifier silent = notifier("exit 1");
  silent.finish(0, "done", false);
  std::filesystem::remove(folder_.path() / "python");
  RunNotifier missing{kSecret, {}, [this](const Problem& problem) { said_.push_back(problem.line()); }};
  missing.finish(0, "done", false);
  ASSERT_EQ(said_.size(), 3U);
  EXPECT_NE(said_[0].find("the end was not told: the server answers with HTTP 404"), std::string::npos);
  EXPECT_NE(said_[1].find("the script that posts it failed"), std::string::npos);
  EXPECT_NE(said_[2].find("cannot be started"), std::string::npos);
  for (const std::string& line : said_) EXPECT_EQ(line.find("secret"), std::string::npos);
}

TEST_F(RunNotifierTest, AnEmptyAddressStartsNothing) {
  RunNotifier silent = notifier(kRecorder, "");
  silent.on_start({});
  silent.finish(0, "done", false);
  EXPECT_TRUE(posted().empty());
}

}  // namespace
}  // namespace sdtune::train
