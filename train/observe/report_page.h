// report.html: what a run did, in one file that opens offline and can be sent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/files/file_system.h"
#include "train/observe/observer.h"
#include "train/observe/step_lines.h"

namespace sdtune::train {

class ReportPage : public Observer {
 public:
  // `price_per_hour` of the machine, in any currency; unset: no cost is stated. `warn` may be empty; it is called
  // once when the page cannot be written.
  ReportPage(FileSystem& files, std::optional<double> price_per_hour, Warn warn);

  void on_start(const RunSummary& summary) override;
  void on_warning(const Problem& problem) override;
  // Writes <output>/report.html from what lies in the run folder then: curves of metrics.jsonl and validation.jsonl,
  // the last validation images with the base's, the contact sheet, config.yaml; and this attempt's warnings. A failed
  // run gets its page too.
  void on_end(const EndEvent& event) override;

 private:
  std::string page(const EndEvent& event) const;

  FileSystem& files_;
  std::optional<double> price_per_hour_;
  Warn warn_;
  RunSummary summary_;
  std::vector<std::string> warnings_;
};

}  // namespace sdtune::train
