// report.html: what a run does and did, in one file that opens offline, needs no script and can be sent.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "model/files/file_system.h"
#include "train/observe/observer.h"
#include "train/observe/page_images.h"
#include "train/observe/report_sections.h"
#include "train/observe/step_lines.h"

namespace sdtune::train {

// Writes <output>/report.html from what lies in the run folder then, and this attempt's warnings: photos, base and
// model of the same seeds, likeness and validation over the steps, curves, options and where they came from, cost,
// ledger. While the run goes on every half minute, and never sooner than a hundred times as long as the last page took:
// 1 % of the time. A failed run gets its page too. The first step removes the images of an earlier end's model.
class ReportPage : public Observer {
 public:
  using Clock = std::function<double()>;  // s, steady

  // `price_per_hour` of the machine, in any currency; unset: no cost is stated. `warn` may be empty; it is called
  // once when the page cannot be written, and may call on_warning of this page.
  ReportPage(FileSystem& files, std::optional<double> price_per_hour, Warn warn);
  ReportPage(FileSystem& files, std::optional<double> price_per_hour, Warn warn, Clock clock);

  void on_start(const RunSummary& summary) override;
  void on_step(const StepEvent& event) override;
  void on_validation(const ValidationEvent& event) override;
  void on_warning(const Problem& problem) override;
  void on_end(const EndEvent& event) override;

 private:
  void remove_comparison();
  void write();
  void warn_once(const std::filesystem::path& path, const std::string& what);
  std::string page();

  FileSystem& files_;
  Warn warn_;
  Clock clock_;
  double next_ = 0;  // when the page is due again
  bool has_trained_ = false;
  bool warned_ = false;
  bool is_writing_ = false;
  ReportState state_;
  PageImages pictures_;
};

}  // namespace sdtune::train
