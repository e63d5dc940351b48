// A shell stands for the side process. The real one with the real packages is in tests/python/test_trackers.py.
#include "train/track/tracker_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/files/json_file.h"
#include "tests/support/environment.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

// Writes every line into FOLDER/lines and replies as tracker_process.py does, with the id r1, until the line of the
// end.
constexpr const char* kRecorder = R"(
n=0
while read -r line <&3; do
  n=$((n + 1)); echo "$line" >> "$RECORD/lines"
  case "$line" in *'"type":"start"'*) echo '{"id":["wandb","r1"]}' >&3;; esac
  echo "{\"done\":$n}" >&3
  case "$line" in *'"type":"end"'*) exit;; esac
done)";

class TrackerLogTest : public testing::Test {
 protected:
  TrackerLogTest()
      : record_("RECORD", folder_.path().string()), python_("SDTUNE_PYTHON", (folder_.path() / "python").string()) {
    options_.report_to = {"wandb"};
    options_.tracker_project_name = "portraits";
    options_.tracker_timeout = 30;
    folder_.write("me/config.yaml", "seed: 7\n");
    use_script(kRecorder);
  }

  void use_script(const std::string& script) {
    const fs::path file = folder_.write("python", "#!/bin/bash\n" + script + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  TrackerLog log() {
    return {options_, real_file_system(), [this](const Problem& problem) { said_.push_back(problem.what); }};
  }
  RunSummary summary(std::int64_t attempt, std::int64_t first_step) const {
    RunSummary result;
    result.output = folder_.path() / "me";
    result.attempt = attempt;
    result.first_step = first_step;
    return result;
  }
  // What the script got.
  std::vector<Json> lines() const {
    std::ifstream file(folder_.path() / "lines");
    std::vector<Json> found;
    for (std::string line; std::getline(file, line);) found.push_back(Json::parse(line));
    return found;
  }

  test::ScratchFolder folder_;
  test::Environment record_, python_;
  ObserveOptions options_;
  std::vector<std::string> said_;
};

StepEvent step(std::int64_t number, double loss) {
  StepEvent event;
  event.step = number;
  event.loss = loss;
  event.time = 1000.5;
  return event;
}

TEST_F(TrackerLogTest, TellsStartStepsAndEndInOrder) {
  TrackerLog log = this->log();
  log.on_start(summary(1, 0));
  log.on_step(step(1, 0.25));
  log.on_step(step(2, std::numeric_limits<double>::quiet_NaN()));
  EndEvent end;
  end.code = ExitCode::kDone;
  log.on_end(end);
  const std::vector<Json> told = lines();
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0]["type"], "start");
  EXPECT_EQ(told[0]["name"], "me");
  EXPECT_EQ(told[0]["project"], "portraits");
  EXPECT_EQ(told[0]["config"]["seed"], 7);
  EXPECT_EQ(told[0]["ids"], Json::object());
  EXPECT_EQ(told[1]["step"], 1);
  EXPECT_EQ(told[1]["time"], 1000.5);
  EXPECT_EQ(told[1]["values"]["loss"], 0.25);
  EXPECT_TRUE(told[2]["values"]["loss"].is_null()) << "JSON has no NaN";
  EXPECT_EQ(told[3]["type"], "end");
  EXPECT_EQ(told[3]["model"], "");
  EXPECT_TRUE(said_.empty()) << said_.front();
}

TEST_F(TrackerLogTest, AResumedRunGoesOnWithItsIdAndAFreshOneDoesNot) {
  for (const auto& [attempt, first_step] : {std::pair{1, 0}, {2, 3}, {1, 0}}) {
    TrackerLog log = this->log();
    log.on_start(summary(attempt, first_step));
    log.on_end({});
    EXPECT_EQ(read_json(folder_.path() / "me/trackers.json")["wandb"], "r1");
  }
  const std::vector<Json> told = lines();
  ASSERT_EQ(told.size(), 6U);
  EXPECT_EQ(told[0]["ids"], Json::object());
  EXPECT_EQ(told[2]["ids"]["wandb"], "r1");
  EXPECT_EQ(told[2]["first_step"], 3);
  EXPECT_EQ(told[4]["ids"], Json::object());
}

TEST_F(TrackerLogTest, DamagedIdsBeginANewRun) {
  folder_.write("me/trackers.json", "{\"wandb\": \"r0");
  TrackerLog log = this->log();
  log.on_start(summary(2, 3));
  log.on_end({});
  EXPECT_EQ(lines().at(0)["ids"], Json::object());
}

// As they are left by hand for a new run.
TEST_F(TrackerLogTest, AnIdThatIsNoTextIsReplaced) {
  folder_.write("me/trackers.json", "{\"wandb\": null}");
  TrackerLog log = this->log();
  log.on_start(summary(2, 3));
  log.on_end({});
  EXPECT_TRUE(lines().at(0)["ids"]["wandb"].is_null());
  EXPECT_EQ(read_json(folder_.path() / "me/trackers.json")["wandb"], "r1");
  EXPECT_TRUE(said_.empty()) << said_.front();
}

TEST_F(TrackerLogTest, ValidationImagesAreNamedWithPromptAndSeed) {
  TrackerLog log = this->log();
  log.on_start(summary(1, 0));
  ValidationEvent event;
  event.step = 5;
  event.images.resize(2);
  event.prompts = {"a man", "a woman"};
  event.seeds = {8, 9};
  event.loss = 0.5;
  log.on_validation(event);
  log.on_end({});
  const std::vector<Json> told = lines();
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[1]["values"]["validation_loss"], 0.5);
  EXPECT_EQ(told[2]["type"], "images");
  EXPECT_EQ(told[2]["images"][1]["name"], "validation/1");
  EXPECT_EQ(told[2]["images"][1]["caption"], "a woman (seed 9)");
}

TEST_F(TrackerLogTest, AProcessThatDiesIsSaidOnceAndTheRestIsCounted) {
  use_script("read -r line <&3; echo '{\"done\":1}' >&3; exit 3");
  TrackerLog log = this->log();
  log.on_start(summary(1, 0));
  for (int i = 1; i <= 200; ++i) {
    log.on_step(step(i, 1));
    usleep(1000);
  }
  log.on_end({});
  ASSERT_EQ(said_.size(), 2U);
  EXPECT_EQ(said_[0], "the side process has ended");
  EXPECT_EQ(said_[1], "201 of 202 events were not delivered");
}

TEST_F(TrackerLogTest, AProcessThatDiesBetweenEventsIsSaidToo) {
  use_script("read -r line <&3; echo '{\"done\":1}' >&3");
  TrackerLog log = this->log();
  log.on_start(summary(1, 0));
  usleep(300000);
  log.on_step(step(1, 1));
  EXPECT_THAT(said_, testing::ElementsAre("the side process has ended"));
  log.on_end({});
  EXPECT_THAT(said_, testing::ElementsAre("the side process has ended", "2 of 3 events were not delivered"));
}

TEST_F(TrackerLogTest, WarningsOfTheTrackersAreHandedOn) {
  use_script(
      "read -r line <&3; echo '{\"warn\":[\"wandb\",\"no key\"]}' >&3; read -r line <&3; "
      "echo '{\"lost\":[\"wandb\",1]}' >&3; echo '{\"done\":2}' >&3");
  TrackerLog log = this->log();
  log.on_start(summary(1, 0));
  log.on_end({});
  EXPECT_EQ(said_, (std::vector<std::string>{"wandb: no key", "wandb: 1 events were not delivered"}));
}

TEST_F(TrackerLogTest, AServerThatDoesNotAnswerEndsWithTheTimeout) {
  use_script("exec sleep 1000");
  options_.tracker_timeout = 0.2;
  TrackerLog log = this->log();
  log.on_start(summary(1, 0));
  log.on_end({});
  EXPECT_EQ(said_, (std::vector<std::string>{"2 of 2 events were not delivered within tracker_timeout"}));
}

}  // namespace
}  // namespace sdtune::train
