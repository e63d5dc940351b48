// The words, numbers and tables of report.html.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/observe/observer.h"
#include "train/observe/report_data.h"

namespace sdtune::train {

// Where a run stands. `end` is unset while it goes on.
struct ReportState {
  RunSummary summary;
  std::optional<EndEvent> end;
  double now = 0;  // s since 1970
  std::optional<double> price_per_hour;
  std::vector<std::string> warnings;
  std::set<std::int64_t> validated;  // steps, by this attempt

  // Whether images of that step are this run's: an earlier attempt may have left those of steps beyond the one that
  // this attempt resumed from, and options may have changed since.
  bool has_validation(std::int64_t step) const { return step <= summary.first_step || validated.contains(step); }
};

std::string html_row(const std::vector<std::string>& cells);  // escaped; "" where the last one is empty
std::string html_section(const std::string& title, const std::string& content);  // "" without content

// "done after step 60 of 60", "goes on: step 12 of 60; written 2026-11-30 17:00:00 (UTC)".
std::string state_text(const ReportState& state, const ReportData& data);
// What was trained on what, as a table.
std::string facts_table(const ReportState& state, const ReportData& data);
// The options that are not defaults, and where each came from.
std::string options_table(const ReportData& data);
// The attempts of the run: times, steps, causes, and with a price their cost.
std::string ledger_table(const ReportState& state, const ReportData& data);
// With a price: money for the run, an epoch and 1000 images that were trained on.
std::string cost_table(const ReportState& state, const ReportData& data);
// Curves of validation and likeness, and of every step.
std::string result_curves(const ReportData& data);
std::string step_curves(const ReportData& data);

}  // namespace sdtune::train
