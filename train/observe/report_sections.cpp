#include "train/observe/report_sections.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "train/observe/curve_svg.h"
#include "train/observe/html_text.h"

namespace sdtune::train {

namespace {

constexpr double kHour = 3600;  // s
constexpr double kGibibyte = 1024.0 * 1024 * 1024;

struct Shown {
  const char* key;
  const char* name;
  const char* unit;
  double scale = 1;
};
constexpr Shown kResults[] = {{"score", "score", ""},
                              {"identity", "likeness", ""},
                              {"prompt_fidelity", "prompt fidelity", ""},
                              {"leak", "leakage", ""}};
constexpr Shown kSteps[] = {{"loss", "loss", ""},
                            {"loss_instance", "loss of the photos", ""},
                            {"loss_prior", "loss of the class images", ""},
                            {"lr", "learning rate", ""},
                            {"text_encoder_lr", "learning rate of the text encoder", ""},
                            {"grad_norm", "gradient norm", ""},
                            {"loss_scale", "loss scale", ""},
                            {"images_per_s", "speed", "photos/s"},
                            {"communication_share", "waiting for the network", "%", 100},
                            {"straggler_ratio", "slowest rank over the mean", ""},
                            {"slowest_rank", "number of the slowest rank", ""},
                            {"overlapped_share", "gradients that were sent early", "%", 100},
                            {"max_memory_bytes", "highest memory", "GiB", 1 / kGibibyte}};

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  return fmt::format("{} h {:02} min {:02} s", whole / 3600, whole / 60 % 60, whole % 60);
}

// As the progress bar says it: the system's description may begin with the device itself.
std::string device_text(const RunSummary& summary) {
  if (summary.device_name.empty()) return summary.device;
  if (summary.device_name.starts_with(summary.device)) return summary.device_name;
  return summary.device + " (" + summary.device_name + ")";
}

std::string curve(const StepNumbers& numbers, const Shown& shown) {
  Curve made{shown.name, shown.unit, {}};
  for (const auto& [step, value] : numbers) made.points.emplace_back(step, value * shown.scale);
  return curve_svg(made);
}

std::string curve(const std::vector<Json>& lines, const Shown& shown) {
  const std::map<std::int64_t, double> values = ReportData::values(lines, shown.key);
  return curve(StepNumbers(values.begin(), values.end()), shown);
}

// Of all attempts: each counts anew.
std::optional<double> highest(const StepNumbers& numbers) {
  std::optional<double> most;
  for (const auto& [step, value] : numbers) most = std::max(most.value_or(value), value);
  return most;
}

std::string money(double amount) {
  return fmt::format("{:.2f}", amount);
}

std::string number_in(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_number_integer() ? std::to_string(value.get<std::int64_t>()) : "";
}

std::tm utc(double seconds) {
  return fmt::gmtime(static_cast<std::time_t>(seconds));
}

std::string time_in(const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  return value.is_number() ? fmt::format("{:%Y-%m-%d %H:%M}", utc(value.get<double>())) : "";
}

std::string table(const std::string& rows) {
  return rows.empty() ? "" : "<div class=\"wide\"><table>\n" + rows + "</table></div>\n";
}

std::string heads(const std::vector<std::string>& names) {
  std::string html = "<tr>";
  for (const std::string& name : names) html += "<th>" + html_escaped(name) + "</th>";
  return html + "</tr>\n";
}

}  // namespace

std::string html_row(const std::vector<std::string>& cells) {
  if (cells.back().empty()) return {};
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += "<td>" + html_escaped(cell) + "</td>";
  return html + "</tr>\n";
}

std::string html_section(const std::string& title, const std::string& content) {
  return content.empty() ? "" : "<h2>" + html_escaped(title) + "</h2>\n" + content;
}

std::string state_text(const ReportState& state, const ReportData& data) {
  const std::string of = " of " + std::to_string(state.summary.total_steps);
  // With its time: the page of a run that the kernel killed says this for ever.
  if (!state.end) {
    return "goes on: step " + std::to_string(data.steps.last_step) + of +
           fmt::format("; written {:%Y-%m-%d %H:%M:%S} (UTC)", utc(state.now));
  }
  const EndEvent& end = *state.end;
  const std::string after = " after step " + std::to_string(end.step) + of;
  if (end.end == RunEnd::kFailed) return "failed" + (end.cause.empty() ? "" : ": " + end.cause);
  if (end.end == RunEnd::kStopped) {
    const std::string cause = end.cause.empty() ? "" : " by " + end.cause;
    if (end.step == 0 && end.checkpoint.empty()) return "stopped before the first step" + cause;
    return "stopped" + after + cause + "; it can be resumed";
  }
  const std::string best =
      end.model_step == end.step ? "" : "; the model is that of step " + std::to_string(end.model_step);
  return "done" + after + best + (end.is_partial ? "; " + end.cause + "; it can be resumed" : "");
}

std::string facts_table(const ReportState& state, const ReportData& data) {
  const RunSummary& summary = state.summary;
  const std::string class_images =
      summary.class_images > 0 ? ", and " + std::to_string(summary.class_images) + " class images" : "";
  std::string rows =
      html_row({"base", summary.base}) +
      html_row({"trained", fmt::format("{} ({}), ", fmt::join(summary.components, ", "), summary.method) +
                               std::to_string(summary.trainable_parameters) + " parameters"}) +
      html_row({"photos",
                std::to_string(summary.images) + " of " + std::to_string(summary.resolution) + " px" + class_images}) +
      html_row({"batch", std::to_string(summary.batch) +
                             (summary.ranks > 1 ? " on " + std::to_string(summary.ranks) + " ranks" : "")}) +
      html_row({"device", device_text(summary) + ", " + summary.dtype}) +
      html_row({"seed", std::to_string(summary.seed)}) + html_row({"time", duration(data.seconds(state.now))});
  if (const std::optional<double> memory = highest(data.steps.of("max_memory_bytes"))) {
    rows += html_row({"highest memory", fmt::format("{:.2f} GiB", *memory / kGibibyte)});
  }
  for (const std::string& note : summary.notes) rows += html_row({"note", note});
  return table(rows);
}

std::string options_table(const ReportData& data) {
  std::string rows;
  for (const ChosenOption& option : data.options) {
    const std::string& from = option.origin;
    rows += html_row({option.name, option.value, from.substr(from.rfind('/') + 1)});  // a file without its folders
  }
  return rows.empty() ? "" : table(heads({"option", "value", "from"}) + rows);
}

std::string ledger_table(const ReportState& state, const ReportData& data) {
  std::string rows;
  for (const Json& attempt : data.record.value("attempts", Json::array())) {
    if (!attempt.is_object()) continue;
    const Json started = attempt.value("started", Json()), ended = attempt.value("ended", Json(state.now));
    const bool has_times = started.is_number() && ended.is_number();
    // A clock that was set back in between gives no time less than none.
    const double seconds = has_times ? std::max(0.0, ended.get<double>() - started.get<double>()) : 0;
    const Json code = attempt.value("exit_code", Json());
    const Json cause = attempt.value("cause", Json());
    std::string end = cause.is_string() ? cause.get<std::string>() : "goes on";
    if (code.is_number_integer()) end += " (exit code " + std::to_string(code.get<int>()) + ")";
    const std::string last =
        attempt.contains("last_step") ? number_in(attempt, "last_step") : std::to_string(data.steps.last_step);
    std::vector<std::string> cells = {number_in(attempt, "attempt"), time_in(attempt, "started"), duration(seconds),
                                      number_in(attempt, "first_step") + " to " + last,
                                      number_in(attempt, "redone_steps")};
    if (state.price_per_hour) cells.push_back(money(seconds / kHour * *state.price_per_hour));
    cells.push_back(end);
    rows += html_row(cells);
  }
  if (rows.empty()) return {};
  std::vector<std::string> names = {"attempt", "started (UTC)", "time", "steps", "steps done again"};
  if (state.price_per_hour) names.emplace_back("cost");
  names.emplace_back("end");
  return table(heads(names) + rows);
}

std::string cost_table(const ReportState& state, const ReportData& data) {
  if (!state.price_per_hour) return {};
  const double cost = data.seconds(state.now) / kHour * *state.price_per_hour;
  std::string rows = html_row({"the run", money(cost) + " at " + money(*state.price_per_hour) + " an hour"});
  const StepNumbers& epochs = data.steps.of("epoch");
  if (!epochs.empty() && epochs.back().second > 0) {
    rows += html_row({"an epoch", fmt::format("{:.3g}", cost / epochs.back().second)});
  }
  const auto images = static_cast<double>(data.steps.last_step * state.summary.batch);
  if (images > 0) rows += html_row({"1000 photos trained on", fmt::format("{:.3g}", cost / images * 1000)});
  return table(rows);
}

std::string result_curves(const ReportData& data) {
  std::string curves;
  for (const Shown& shown : kResults) curves += curve(data.identity, shown);
  curves += curve(data.validation, {"loss", "validation loss", ""});
  return curves.empty() ? "" : "<div class=\"curves\">\n" + curves + "</div>\n";
}

std::string step_curves(const ReportData& data) {
  std::string curves;
  for (const Shown& shown : kSteps) curves += curve(data.steps.of(shown.key), shown);
  return curves.empty() ? "" : "<div class=\"curves\">\n" + curves + "</div>\n";
}

}  // namespace sdtune::train
