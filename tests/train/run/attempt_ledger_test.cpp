#include "train/run/attempt_ledger.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "model/files/json_file.h"
#include "tests/support/scratch_folder.h"

namespace sdtune::train {
namespace {

class Ledger : public testing::Test {
 protected:
  void write_attempts(const Json& attempts) {
    scratch_.write("run.json", Json{{"seed", 3}, {"attempts", attempts}}.dump());
  }
  Json last() const { return read_attempts(folder_).back(); }

  test::ScratchFolder scratch_;
  const RunFolder folder_{scratch_.path()};
};

TEST_F(Ledger, AKilledAttemptIsFilledInFromItsMetrics) {
  write_attempts({{{"attempt", 1}, {"first_step", 0}, {"started", 1000}}});
  scratch_.write("metrics.jsonl",
                 "{\"attempt\":1,\"step\":6,\"time\":1060.5}\n{\"attempt\":1,\"step\":9,\"time\":1090.5}\n"
                 "{\"attempt\":2,\"step\":40,\"time\":9999.5}\n{\"attempt\":1,\"st");
  const Json attempt = attempts_before(folder_, 6).at(0);
  EXPECT_EQ(attempt["ended"], 1090);
  EXPECT_EQ(attempt["last_step"], 9);
  EXPECT_EQ(attempt["redone_steps"], 3);
  EXPECT_TRUE(attempt["exit_code"].is_null());
  EXPECT_EQ(attempt["cause"], "not known: it was killed, or the machine was lost");
  EXPECT_EQ(seconds_of(attempts_before(folder_, 6)), 90);
}

// More than a file that is read as a whole may have: a run of millions of steps must resume after a kill.
TEST_F(Ledger, AKilledAttemptIsFilledInFromALogOfAnySize) {
  write_attempts({{{"attempt", 1}, {"first_step", 0}, {"started", 1000}}});
  const std::filesystem::path log = scratch_.write("metrics.jsonl", "{\"attempt\":1,\"step\":6,\"time\":1060.5}\n");
  std::filesystem::resize_file(log, (std::uintmax_t{1} << 30) + 1);
  std::ofstream(log, std::ios::app) << "\n{\"attempt\":1,\"step\":9,\"time\":1090.5}\n";
  const Json attempt = attempts_before(folder_, 6).at(0);
  EXPECT_EQ(attempt["ended"], 1090);
  EXPECT_EQ(attempt["last_step"], 9);
}

TEST_F(Ledger, AnAttemptWithoutAStepTookNoTimeThatIsKnown) {
  write_attempts({{{"attempt", 1}, {"first_step", 4}, {"started", 1000}}});
  const Json attempt = attempts_before(folder_, 4).at(0);
  EXPECT_EQ(attempt["ended"], 1000);
  EXPECT_EQ(attempt["last_step"], 4);
  EXPECT_EQ(attempt["redone_steps"], 0);
}

TEST_F(Ledger, WhatAnAttemptSaidStays) {
  write_attempts({{{"attempt", 1},
                   {"first_step", 0},
                   {"started", 1000},
                   {"ended", 1500},
                   {"last_step", 8},
                   {"cause", "SIGTERM"},
                   {"exit_code", 143},
                   {"redone_steps", 0}},
                  {{"attempt", 2}, {"first_step", 8}, {"started", 2000}, {"ended", 2250}, {"last_step", 12}}});
  const Json attempts = attempts_before(folder_, 8);
  EXPECT_EQ(attempts[0]["cause"], "SIGTERM");
  EXPECT_EQ(attempts[0]["redone_steps"], 0);
  EXPECT_EQ(attempts[1]["redone_steps"], 4);
  EXPECT_EQ(seconds_of(attempts), 750);
}

TEST_F(Ledger, AnAttemptWhoseNumberIsNoneHasNoMetrics) {
  write_attempts({{{"attempt", "first"}, {"first_step", 4}, {"started", 1000}}});
  scratch_.write("metrics.jsonl", "{\"attempt\":1,\"step\":6,\"time\":1060.5}\n");
  EXPECT_EQ(attempts_before(folder_, 4).at(0)["last_step"], 4);
}

TEST_F(Ledger, ForeignContentIsNoLedger) {
  EXPECT_TRUE(read_attempts(folder_).empty());
  for (const char* content : {"", "{", "[]", "{}", "{\"attempts\": 3}", "{\"attempts\": [3, null]}"}) {
    scratch_.write("run.json", content);
    EXPECT_TRUE(attempts_before(folder_, 0).empty()) << content;
  }
}

TEST_F(Ledger, AnotherDeviceIsWarnedOf) {
  const std::string two = "cpu (AMD EPYC, 2 threads, AVX2)", one = "cpu (AMD EPYC, 1 threads, AVX2)";
  const Json attempts = {{{"device", one}}, {{"device", two}}};
  EXPECT_FALSE(device_change(attempts, two));
  const std::optional<Problem> change = device_change(attempts, one);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->where, "device");
  EXPECT_NE(change->what.find(one), std::string::npos);
  EXPECT_NE(change->what.find(two), std::string::npos);
  EXPECT_FALSE(device_change({{{"device", "cuda:0 (NVIDIA L4, 22 GiB)"}}}, "cuda:1 (NVIDIA L4, 22 GiB)"));
  EXPECT_TRUE(device_change({{{"device", "cuda:0 (NVIDIA L4, 22 GiB)"}}}, "cuda:0 (NVIDIA H100, 80 GiB)"));
  EXPECT_FALSE(device_change(Json::array(), one));
  EXPECT_FALSE(device_change({{{"attempt", 1}}, {{"attempt", 2}}}, one));
  EXPECT_TRUE(device_change({{{"device", two}}, {{"attempt", 2}}}, one));  // the last one that says it
}

TEST_F(Ledger, TheEndIsWritten) {
  write_attempts({{{"attempt", 1}, {"first_step", 2}, {"started", 1000}}});
  AttemptLedger ledger(real_file_system(), folder_, 1000, {});
  ledger.on_end({});  // it never began
  EXPECT_FALSE(last().contains("ended"));
  RunSummary summary;
  summary.output = scratch_.path();
  summary.first_step = 2;
  ledger.on_start(summary);
  StepEvent step;
  for (step.step = 3; step.step <= 7; ++step.step) ledger.on_step(step);
  ledger.on_checkpoint({5, {}, 0});
  EndEvent end{RunEnd::kFailed};
  end.code = ExitCode::kStorage;
  end.cause = "the disk is full";
  ledger.on_end(end);
  EXPECT_EQ(last()["last_step"], 7);
  EXPECT_EQ(last()["redone_steps"], 2);
  EXPECT_EQ(last()["exit_code"], 5);
  EXPECT_EQ(last()["cause"], "the disk is full");
  EXPECT_GT(last()["ended"], 1000);
  EXPECT_EQ(read_json(folder_.record())["seed"], 3);
}

// Of which there is no run.json: class images may take hours, and a spot machine be taken away again and again.
TEST_F(Ledger, AttemptsThatEndBeforeTheirFirstStepCount) {
  EndEvent end{RunEnd::kStopped};
  end.code = ExitCode::kTerminated;
  end.cause = "SIGTERM";
  for (const std::int64_t started : {1000, 2000}) AttemptLedger(real_file_system(), folder_, started, {}).on_end(end);
  EXPECT_FALSE(folder_.has_run());
  const Json attempts = attempts_before(folder_, 0);
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[1]["attempt"], 2);
  EXPECT_EQ(attempts[1]["last_step"], 0);
  EXPECT_EQ(attempts[1]["cause"], "SIGTERM");
  EXPECT_EQ(attempts[1]["exit_code"], 143);
  const auto ended = [&](std::size_t index) { return attempts[index]["ended"].get<double>(); };
  EXPECT_EQ(seconds_of(attempts), ended(0) - 1000 + ended(1) - 2000);
  write_attempts(attempts);
  EXPECT_EQ(attempts_before(folder_, 0), attempts);  // each once
}

TEST_F(Ledger, WhatIsDoneAgainIsOfTheLastAttemptWithSteps) {
  write_attempts({{{"attempt", 1}, {"first_step", 0}, {"started", 500}, {"ended", 900}, {"last_step", 9}}});
  AttemptLedger(real_file_system(), folder_, 1000, {}).on_end({RunEnd::kFailed});
  const Json attempts = attempts_before(folder_, 6);
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0]["redone_steps"], 3);
  EXPECT_EQ(attempts[1]["first_step"], 6);
  EXPECT_EQ(attempts[1]["redone_steps"], 0);
}

TEST_F(Ledger, AnAttemptThatEndsInTheSecondOfItsStartIsNone) {
  AttemptLedger(real_file_system(), folder_, std::int64_t{1} << 40, {}).on_end({RunEnd::kFailed});
  EXPECT_FALSE(std::filesystem::exists(folder_.unstarted()));
}

TEST_F(Ledger, ARefusedAttemptIsNone) {
  for (const ExitCode code : {ExitCode::kBadInput, ExitCode::kNoCheckpoint}) {
    EndEvent end{RunEnd::kFailed};
    end.code = code;
    AttemptLedger(real_file_system(), folder_, 1000, {}).on_end(end);
    EXPECT_FALSE(std::filesystem::exists(folder_.unstarted()));
  }
}

TEST_F(Ledger, ARecordThatIsGoneIsAWarning) {
  std::vector<std::string> warnings;
  AttemptLedger ledger(real_file_system(), folder_, 1000,
                       [&](const Problem& problem) { warnings.push_back(problem.line()); });
  RunSummary summary;
  summary.output = scratch_.path();
  ledger.on_start(summary);
  ledger.on_end({});
  scratch_.write("run.json", "{}");
  ledger.on_end({});
  EXPECT_EQ(warnings.size(), 2U);
}

}  // namespace
}  // namespace sdtune::train
