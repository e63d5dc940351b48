// What is compared with the real TensorBoard is in tests/python/test_observe.py; here are the faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "train/observe/metrics_log.h"
#include "train/observe/preview.h"
#include "train/observe/report_sections.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

StepEvent at_step(std::int64_t step) {
  StepEvent event;
  event.step = step;
  return event;
}

class Logs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("sdtune_logs_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  RunSummary summary(std::int64_t first_step) const {
    RunSummary result;
    result.output = folder_;
    result.first_step = first_step;
    return result;
  }
  std::vector<std::int64_t> steps() const {
    std::ifstream file(folder_ / "metrics.jsonl");
    std::vector<std::int64_t> result;
    for (std::string line; std::getline(file, line);) result.push_back(Json::parse(line)["step"].get<std::int64_t>());
    return result;
  }

  fs::path folder_;
};

TEST_F(Logs, ResumeDropsLaterLinesAndATornOne) {
  {
    MetricsLog log(real_file_system(), {});
    log.on_start(summary(0));
    for (std::int64_t step = 1; step <= 4; ++step) log.on_step(at_step(step));
  }
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"step\": 5, \"lo";
  MetricsLog log(real_file_system(), {});
  log.on_start(summary(2));
  log.on_step(at_step(3));
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3}));
}

// Zeros in the middle, as a loss of power leaves them, make it larger than a file that is read as a whole may be.
TEST_F(Logs, ResumeDropsLaterLinesOfALogOfAnySize) {
  const auto fail = [](const Problem& problem) { ADD_FAILURE() << problem.line(); };
  {
    MetricsLog log(real_file_system(), fail);
    log.on_start(summary(0));
    for (std::int64_t step = 1; step <= 2; ++step) log.on_step(at_step(step));
  }
  fs::resize_file(folder_ / "metrics.jsonl", (std::uintmax_t{1} << 30) + 1);
  std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "\n{\"step\": 3}\n";
  MetricsLog log(real_file_system(), fail);
  log.on_start(summary(2));
  log.on_step(at_step(3));
  EXPECT_LT(fs::file_size(folder_ / "metrics.jsonl"), 10'000U);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(Logs, FailureWarnsOnceAndDoesNotThrow) {
  fs::create_directories(folder_ / "metrics.jsonl");
  int warnings = 0;
  MetricsLog log(real_file_system(), [&](const Problem&) { ++warnings; });
  log.on_start(summary(0));
  for (std::int64_t step = 1; step <= 3; ++step) log.on_step(at_step(step));
  EXPECT_EQ(warnings, 1);
}

// As docs/cloud.md has them: in metrics.jsonl, in TensorBoard and the trackers (step_values), and in report.html.
TEST_F(Logs, TheFourFiguresOfSeveralRanksAreEverywhere) {
  MetricsLog log(real_file_system(), {});
  log.on_start(summary(0));
  for (std::int64_t step = 1; step <= 2; ++step) {
    StepEvent event = at_step(step);
    event.communication_share = event.overlapped_share = 0.25 * static_cast<double>(step);
    event.straggler_ratio = 1 + 0.1 * static_cast<double>(step);
    event.slowest_rank = step;
    log.on_step(event);
    const auto values = step_values(event);
    for (const char* name : {"communication_share", "straggler_ratio", "slowest_rank", "overlapped_share"}) {
      const auto is_it = [&](const auto& value) { return value.first == name; };
      EXPECT_TRUE(std::any_of(values.begin(), values.end(), is_it)) << name;
    }
  }
  std::ifstream file(folder_ / "metrics.jsonl");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(Json::parse(line)["slowest_rank"].dump(), "1");  // a whole number
  const std::string curves = step_curves(read_report_data(folder_));
  for (const char* name : {"waiting for the network (%)", "slowest rank over the mean", "number of the slowest rank",
                           "gradients that were sent early (%)"}) {
    EXPECT_NE(curves.find("aria-label=\"" + std::string(name) + ": lowest"), std::string::npos) << name;
  }
}

TEST_F(Logs, PreviewWritesNoGridForOneImage) {
  Preview preview(real_file_system(), {});
  preview.on_start(summary(0));
  preview.on_validation({5, {Image{2, 2, std::vector<std::uint8_t>(12, 7)}}, {"p"}, {3}});
  EXPECT_TRUE(fs::exists(folder_ / "samples/step-00000005/00_seed-3.png"));
  EXPECT_FALSE(fs::exists(folder_ / "samples/step-00000005/grid.png"));
}

// A resumed run may have another prompt, of which there is no image of the base.
TEST_F(Logs, PreviewShowsTheBaseOfTheSamePromptAlone) {
  const std::vector<Image> images = {Image{8, 8, std::vector<std::uint8_t>(192, 7)}};
  Preview first(real_file_system(), {});
  first.on_start(summary(0));
  first.on_validation({0, images, {"p"}, {3}});
  Preview same(real_file_system(), {});
  same.on_start(summary(4));
  same.on_validation({5, images, {"p"}, {3}});
  EXPECT_TRUE(fs::exists(folder_ / "samples/step-00000005/grid.png"));
  Preview other(real_file_system(), {});
  other.on_start(summary(5));
  other.on_validation({6, images, {"another"}, {3}});
  EXPECT_TRUE(fs::exists(folder_ / "samples/step-00000006/00_seed-3.png"));
  EXPECT_FALSE(fs::exists(folder_ / "samples/step-00000006/grid.png"));
}

}  // namespace
}  // namespace sdtune::train
