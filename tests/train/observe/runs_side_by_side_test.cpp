// Two runs in one process, each on a thread of its own, as Python allows: their observers share nothing.
// scripts/sanitize.sh runs this with the thread sanitizer.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "model/base/json.h"
#include "tests/support/scratch_folder.h"
#include "train/observe/event_file.h"
#include "train/observe/metrics_log.h"
#include "train/observe/preview.h"
#include "train/observe/report_page.h"
#include "train/observe/validation_log.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 20;

// What a run of kSteps tells: one validation, a warning, and its end. `number` tells the runs apart.
void tell_run(const std::vector<Observer*>& observers, const fs::path& folder, int number) {
  RunSummary summary;
  summary.output = folder;
  summary.total_steps = kSteps;
  tell(observers, &Observer::on_start, summary);
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    StepEvent event;
    event.step = step;
    event.total_steps = kSteps;
    event.loss = number;
    tell(observers, &Observer::on_step, event);
  }
  ValidationEvent validation{kSteps, {Image{2, 2, std::vector<std::uint8_t>(12, 7)}}, {"p"}, {3}};
  validation.loss = number;
  tell(observers, &Observer::on_validation, validation);
  tell(observers, &Observer::on_warning, {"run", "warning of run " + std::to_string(number), ""});
  tell(observers, &Observer::on_end, {RunEnd::kDone, kSteps, kSteps, folder / "model", 1.0});
}

void observe_run(const fs::path& folder, int number) {
  fs::create_directories(folder);
  MetricsLog metrics(real_file_system(), {});
  EventFile events({});
  ValidationLog validations(real_file_system(), {});
  Preview preview(real_file_system(), {});
  ReportPage report(real_file_system(), 1.5, {});
  tell_run({&metrics, &events, &validations, &preview, &report}, folder, number);
}

std::vector<double> losses(const fs::path& log) {
  std::ifstream file(log);
  std::vector<double> result;
  for (std::string line; std::getline(file, line);) result.push_back(Json::parse(line)["loss"].get<double>());
  return result;
}

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(RunsSideBySide, EachRunHasItsOwnFiles) {
  const test::ScratchFolder scratch;
  {
    std::vector<std::jthread> runs;
    for (const int number : {1, 2}) {
      runs.emplace_back([&scratch, number] { observe_run(scratch.path() / std::to_string(number), number); });
    }
  }
  for (const int number : {1, 2}) {
    const fs::path folder = scratch.path() / std::to_string(number);
    EXPECT_EQ(losses(folder / "metrics.jsonl"), std::vector<double>(kSteps, number));
    EXPECT_EQ(losses(folder / "validation.jsonl"), std::vector<double>(1, number));
    const std::string report = text_of(folder / "report.html");
    EXPECT_NE(report.find("warning of run " + std::to_string(number)), std::string::npos);
    EXPECT_EQ(report.find("warning of run " + std::to_string(3 - number)), std::string::npos);
    int event_files = 0;
    for (const auto& entry : fs::directory_iterator(folder)) {
      event_files += entry.path().filename().string().starts_with("events.out.tfevents.");
    }
    EXPECT_EQ(event_files, 1);
  }
}

}  // namespace
}  // namespace sdtune::train
