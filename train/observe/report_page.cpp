#include "train/observe/report_page.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "model/base/clock.h"
#include "model/base/error.h"
#include "train/observe/html_text.h"
#include "train/observe/report_style.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

constexpr double kShortestInterval = 30;  // s
constexpr double kCostFactor = 100;       // the interval is at least this many times the writing

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string configuration(const fs::path& path) {
  if (!is_file(path)) return {};
  return "<details><summary>every option (config.yaml)</summary><pre>" + html_escaped(read_file(path)) +
         "</pre></details>\n";
}

std::string warning_list(const std::vector<std::string>& warnings) {
  if (warnings.empty()) return {};
  std::string items;
  for (const std::string& warning : warnings) items += "<li>" + html_escaped(warning) + "</li>\n";
  return "<ul class=\"warnings\">" + items + "</ul>\n";
}

}  // namespace

ReportPage::ReportPage(FileSystem& files, std::optional<double> price_per_hour, Warn warn)
    : ReportPage(files, price_per_hour, std::move(warn), steady_seconds) {}

ReportPage::ReportPage(FileSystem& files, std::optional<double> price_per_hour, Warn warn, Clock clock)
    : files_(files), warn_(std::move(warn)), clock_(std::move(clock)) {
  state_.price_per_hour = price_per_hour;
}

void ReportPage::on_start(const RunSummary& summary) {
  state_.summary = summary;
  next_ = clock_() + kShortestInterval;
}

void ReportPage::on_step(const StepEvent&) {
  if (!std::exchange(has_trained_, true)) remove_comparison();
  if (clock_() >= next_) write();
}

void ReportPage::on_validation(const ValidationEvent& event) {
  state_.validated.insert(event.step);
}

void ReportPage::on_warning(const Problem& problem) {
  state_.warnings.push_back(problem.line());
  if (state_.end && !is_writing_) write();  // of an observer that ends after this one; not of this one itself
}

void ReportPage::on_end(const EndEvent& event) {
  if (state_.summary.output.empty()) return;  // it never began
  state_.end = event;
  write();
}

// Only now: an attempt that trains nothing, or ends before its first step, leaves the model that they show.
void ReportPage::remove_comparison() {
  const fs::path folder = comparison_folder(state_.summary.output);
  std::error_code absent;
  if (!fs::exists(folder, absent)) return;
  try {
    files_.remove_tree(folder);
  } catch (const Error& error) {
    if (!warn_) return;
    warn_({folder.string(), error.problems().front().what, "report.html may show images of the model before this run"});
  }
}

void ReportPage::write() {
  const double began = clock_();
  is_writing_ = true;
  const fs::path path = state_.summary.output / "report.html";
  try {
    write_file_atomically(files_, path, page());
  } catch (const Error& error) {
    warn_once(path, error.problems().front().what);
  } catch (const std::exception& error) {  // of a disk that is gone for a moment, of a record that others changed
    warn_once(path, error.what());
  }
  is_writing_ = false;
  const double ended = clock_();
  next_ = ended + std::max(kShortestInterval, kCostFactor * (ended - began));
}

void ReportPage::warn_once(const fs::path& path, const std::string& what) {
  if (std::exchange(warned_, true) || !warn_) return;
  warn_({path.string(), what, "the run itself is as it should be"});
}

std::string ReportPage::page() {
  state_.now = seconds_since_1970();
  const fs::path& folder = state_.summary.output;
  ReportData data = read_report_data(folder);
  // The first validation of this attempt takes those of steps that are done again out of the file.
  std::erase_if(data.validation,
                [this](const Json& line) { return !state_.has_validation(line.at("step").get<std::int64_t>()); });
  const std::string title = html_escaped(folder_name(folder));
  // A browser that shows the page while the run goes on reads it again.
  const std::string refresh = state_.end ? "" : "<meta http-equiv=\"refresh\" content=\"30\">";
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width,initial-scale=1\">" +
         refresh + "<title>sdtune: " + title + "</title><style>" + kReportStyle + "</style></head><body>\n<h1>" +
         title + "</h1>\n<p class=\"soft\">" + html_escaped(state_text(state_, data)) + "</p>\n" +
         html_section("Photos", pictures_.photos(data)) +
         html_section("Base and model, same prompt and seeds", pictures_.comparison(state_, data)) +
         html_section("Likeness and validation over the steps",
                      pictures_.over_steps(state_, data) + result_curves(data)) +
         html_section("Curves", step_curves(data)) + html_section("The run", facts_table(state_, data)) +
         html_section("What was set, and where it came from", options_table(data)) +
         configuration(folder / "config.yaml") + html_section("Cost", cost_table(state_, data)) +
         html_section("Attempts", ledger_table(state_, data)) +
         html_section("Warnings", warning_list(state_.warnings)) + "</body></html>\n";
}

}  // namespace sdtune::train
