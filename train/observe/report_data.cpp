#include "train/observe/report_data.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "train/observe/step_lines.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDigest = "exam";  // of a line of identity.jsonl

std::string text_of(const fs::path& path) {
  try {
    return is_file(path) ? read_file(path) : std::string();
  } catch (const DataError&) {
    return {};
  }
}

// Calls `use` with each line that says its step, until the file cannot be read any further.
void for_each_step(const fs::path& path, const std::function<void(Json line)>& use) {
  if (!is_file(path)) return;
  try {
    for_each_line(path, [&](std::string_view text) {
      Json line = Json::parse(text, nullptr, false);
      if (line.is_object() && line.contains("step") && line["step"].is_number_integer()) use(std::move(line));
    });
  } catch (const DataError&) {
    return;
  }
}

std::vector<Json> read_lines(const fs::path& path) {
  std::vector<Json> lines;
  for_each_step(path, [&](Json line) { lines.push_back(std::move(line)); });
  return lines;
}

// Of a step that is there twice, as a file that could not be shortened has it, the later line counts.
StepColumns read_columns(const fs::path& path) {
  StepColumns columns;
  for_each_step(path, [&](const Json& line) {
    columns.last_step = line["step"].get<std::int64_t>();
    const auto step = static_cast<double>(columns.last_step);
    for (const auto& [key, value] : line.items()) {
      if (!value.is_number()) continue;
      StepNumbers& numbers = columns.by_key[key];
      while (!numbers.empty() && numbers.back().first >= step) numbers.pop_back();
      numbers.emplace_back(step, value.get<double>());
    }
  });
  return columns;
}

// The results of one kind of evaluation only, as IdentityCurve takes them: scores of another digest `exam` cannot be
// compared with these, and of a step that is there twice the first one counts. Those of steps that will be done again
// stay: the same digest and the same step mean the same weights.
std::vector<Json> comparable(std::vector<Json> lines) {
  if (lines.empty()) return lines;
  const Json digest = lines.back().value(kDigest, Json());
  std::set<std::int64_t> steps;
  std::erase_if(lines, [&](const Json& line) {
    return line.value(kDigest, Json()) != digest || !steps.insert(line.at("step").get<std::int64_t>()).second;
  });
  return lines;
}

// As config_to_yaml writes it: "name: value  # origin".
std::vector<ChosenOption> read_options(const std::string& yaml) {
  std::vector<ChosenOption> options;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    const std::size_t comment = line.rfind("  # ");
    if (line.empty() || std::islower(static_cast<unsigned char>(line.front())) == 0) continue;
    if (colon == std::string::npos || comment == std::string::npos || comment < colon) continue;
    ChosenOption option{line.substr(0, colon), line.substr(colon + 2, comment - colon - 2), line.substr(comment + 4)};
    if (option.origin != "default") options.push_back(std::move(option));
  }
  return options;
}

}  // namespace

const StepNumbers& StepColumns::of(const std::string& key) const {
  static const StepNumbers kNone;
  const auto found = by_key.find(key);
  return found == by_key.end() ? kNone : found->second;
}

std::map<std::int64_t, double> ReportData::values(const std::vector<Json>& lines, const std::string& key) {
  std::map<std::int64_t, double> found;
  for (const Json& line : lines) {
    const auto value = line.find(key);
    if (value != line.end() && value->is_number()) found[line.at("step").get<std::int64_t>()] = value->get<double>();
  }
  return found;
}

double ReportData::seconds(double now) const {
  double sum = 0;
  for (const Json& attempt : record.value("attempts", Json::array())) {
    const Json started = attempt.is_object() ? attempt.value("started", Json()) : Json();
    if (!started.is_number()) continue;
    const Json ended = attempt.value("ended", Json(now));
    if (ended.is_number()) sum += std::max(0.0, ended.get<double>() - started.get<double>());
  }
  return sum;
}

ReportData read_report_data(const fs::path& folder) {
  ReportData data;
  data.folder = folder;
  data.steps = read_columns(folder / "metrics.jsonl");
  data.validation = read_lines(folder / "validation.jsonl");
  data.identity = comparable(read_lines(folder / "identity.jsonl"));
  data.record = Json::parse(text_of(folder / "run.json"), nullptr, false);
  if (!data.record.is_object()) data.record = Json::object();
  data.options = read_options(text_of(folder / "config.yaml"));
  return data;
}

}  // namespace sdtune::train
