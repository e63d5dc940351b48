// What lies in a run folder, as report.html shows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/json.h"

namespace sdtune::train {

// A line of config.yaml that is not a default.
struct ChosenOption {
  std::string name, value;
  std::string origin;  // "--seed", "lora_sd15.yaml:3", "the base"
};

// Numbers over rising steps.
using StepNumbers = std::vector<std::pair<double, double>>;

// metrics.jsonl, whose lines would take two kilobytes each: a run may have a million.
struct StepColumns {
  std::int64_t last_step = 0;
  std::map<std::string, StepNumbers> by_key;

  const StepNumbers& of(const std::string& key) const;  // empty where no step has such a number
};

struct ReportData {
  std::filesystem::path folder;
  StepColumns steps;
  std::vector<Json> validation;  // validation.jsonl
  std::vector<Json> identity;    // identity.jsonl: what can be compared with its last line
  Json record;                   // run.json; an empty object where there is none
  std::vector<ChosenOption> options;

  // The value of `key` at each step that `lines` have a number for.
  static std::map<std::int64_t, double> values(const std::vector<Json>& lines, const std::string& key);
  // s of all attempts up to `now` (s since 1970), by the ledger of run.json; an attempt without an end lasts until
  // then.
  double seconds(double now) const;
};

// Files that are missing, and lines that are none, are left out.
ReportData read_report_data(const std::filesystem::path& folder);

}  // namespace sdtune::train
