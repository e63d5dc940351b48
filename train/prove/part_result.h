// What a part of `sdtune prove` found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"

namespace sdtune::train {

// One number and its bar; a number without a bar is told and cannot fail.
struct Check {
  std::string name;
  double value = 0;
  std::optional<double> at_least = {}, at_most = {};
  std::string source = {};  // where the bar comes from, in a sentence

  bool has_bar() const { return at_least || at_most; }
  bool passed() const;  // NaN passes no bar
};

enum class PartStatus {
  kPassed,
  kFailed,
  kSkipped,     // cannot be done here; `reason` says why
  kUnfinished,  // time was over; the next call continues
};

struct PartResult {
  std::string name;
  PartStatus status = PartStatus::kPassed;
  std::string reason;  // why it failed or was skipped, and what of it was left out
  std::vector<Check> checks;
  Json numbers = Json::object();    // further figures
  std::vector<std::string> images;  // PNG files below the output folder, for the page
  double seconds = 0;
  std::int64_t peak_bytes = 0;  // of the device, or of the largest process on a CPU; 0: not measured

  // kFailed where a check has failed, else as it is.
  void judge();
};

std::string status_name(PartStatus status);  // "passed", "failed", "skipped", "unfinished"
PartResult failed_part(std::string name, std::string reason);
PartResult skipped_part(std::string name, std::string reason);

Json part_json(const PartResult& result);
// Throws WeightError naming `where` for a file that part_json did not make.
PartResult part_from_json(const Json& json, const std::string& where);

Json checks_json(const std::vector<Check>& checks);
std::vector<Check> checks_from_json(const Json& json, const std::string& where);

}  // namespace sdtune::train
