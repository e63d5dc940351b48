#include "train/observe/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "train/observe/curve_svg.h"
#include "train/observe/html_text.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem;color:#222;background:#fff}"
    "table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;vertical-align:top}td:first-child{color:#667}"
    "img,svg{max-width:100%;height:auto}figure{margin:1rem 0}figcaption{color:#667;font-size:.85rem}"
    "polyline{stroke:#2563a8;vector-effect:non-scaling-stroke}.thin{stroke-opacity:.35;stroke-width:1}.bold{stroke-"
    "width:2}"
    "pre{overflow:auto;background:#f4f4f6;padding:1rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#18181b}pre{background:#232328}"
    "text{fill:#ddd}polyline{stroke:#7db4ee}}";
constexpr const char* kCurves[] = {"loss", "loss_instance", "loss_prior", "lr", "grad_norm", "images_per_s"};

constexpr const char* kIdentityFigures[] = {"score", "identity", "prompt_fidelity", "leak"};

std::vector<Json> read_lines(const fs::path& path) {
  std::vector<Json> lines;
  if (!is_file(path)) return lines;
  const std::string content = read_file(path);
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    Json line = Json::parse(content.substr(begin, end - begin), nullptr, false);
    if (line.is_object() && line.contains("step")) lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

Curve curve_of(const std::vector<Json>& lines, const std::string& key, const std::string& name) {
  Curve curve{name, {}};
  for (const Json& line : lines) {
    const auto value = line.find(key);
    if (value != line.end() && value->is_number()) curve.points.emplace_back(line.at("step"), value->get<double>());
  }
  return curve;
}

// Of all attempts, by their steps: steps that were lost in a kill are not counted.
double seconds_of_steps(const std::vector<Json>& lines) {
  std::map<std::int64_t, double> by_attempt;
  for (const Json& line : lines) {
    const auto elapsed = line.find("elapsed");
    if (elapsed == line.end() || !elapsed->is_number()) continue;
    double& longest = by_attempt[line.value("attempt", std::int64_t{1})];
    longest = std::max(longest, elapsed->get<double>());
  }
  double sum = 0;
  for (const auto& entry : by_attempt) sum += entry.second;
  return sum;
}

std::string row(const std::string& name, const std::string& value) {
  return value.empty() ? "" : "<tr><td>" + html_escaped(name) + "</td><td>" + html_escaped(value) + "</td></tr>\n";
}

std::string section(const std::string& title, const std::string& content) {
  return content.empty() ? "" : "<h2>" + html_escaped(title) + "</h2>\n" + content;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  return fmt::format("{} h {:02} min {:02} s", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The newest validation's grid, which has the base above it, or its only image.
std::string last_validation(const fs::path& samples) {
  std::vector<fs::path> steps;
  std::error_code absent;
  for (const fs::directory_entry& entry : fs::directory_iterator(samples, absent)) steps.push_back(entry.path());
  if (steps.empty()) return {};
  const fs::path last = *std::max_element(steps.begin(), steps.end());
  const std::string name = last.filename().string();
  const std::string grid = html_image(last / "grid.png", "validation images, " + name);
  if (!grid.empty()) return grid;
  std::string images;
  for (const fs::directory_entry& entry : fs::directory_iterator(last, absent)) {
    images += html_image(entry.path(), "validation image, " + name);
  }
  return images;
}

std::string text_file(const fs::path& path) {
  if (!is_file(path)) return {};
  return "<details><summary>" + html_escaped(path.filename().string()) + "</summary><pre>" +
         html_escaped(read_file(path)) + "</pre></details>\n";
}

std::string end_text(const EndEvent& event, std::int64_t total) {
  const std::string after = " after step " + std::to_string(event.step) + " of " + std::to_string(total);
  if (event.end == RunEnd::kDone) {
    const bool is_last = event.model_step == event.step;
    return "done" + after + (is_last ? "" : "; the model is that of step " + std::to_string(event.model_step));
  }
  return event.end == RunEnd::kStopped ? "stopped" + after + "; it can be resumed" : "failed";
}

}  // namespace

ReportPage::ReportPage(FileSystem& files, std::optional<double> price_per_hour, Warn warn)
    : files_(files), price_per_hour_(price_per_hour), warn_(std::move(warn)) {}

void ReportPage::on_start(const RunSummary& summary) {
  summary_ = summary;
}

void ReportPage::on_warning(const Problem& problem) {
  warnings_.push_back(problem.line());
}

void ReportPage::on_end(const EndEvent& event) {
  if (summary_.output.empty()) return;  // it never began
  const fs::path path = summary_.output / "report.html";
  try {
    write_file_atomically(files_, path, page(event));
  } catch (const Error& error) {
    if (warn_) warn_({path.string(), error.problems().front().what, "the run itself is as it should be"});
  }
}

std::string ReportPage::page(const EndEvent& event) const {
  const std::vector<Json> steps = read_lines(summary_.output / "metrics.jsonl");
  const std::string title = fs::absolute(summary_.output).lexically_normal().filename().string();
  const double seconds = seconds_of_steps(steps);
  std::string facts = row("state", end_text(event, summary_.total_steps)) + row("base", summary_.base) +
                      row("trained", joined(summary_.components) + " (" + summary_.method + "), " +
                                         std::to_string(summary_.trainable_parameters) + " parameters") +
                      row("device", summary_.device + " " + summary_.device_name + ", " + summary_.dtype) +
                      row("photos", std::to_string(summary_.images) + " at " + std::to_string(summary_.resolution) +
                                        " px, " + std::to_string(summary_.class_images) + " class images") +
                      row("batch", std::to_string(summary_.batch)) + row("seed", std::to_string(summary_.seed)) +
                      row("attempt", std::to_string(summary_.attempt)) + row("time in steps", duration(seconds));
  if (!steps.empty() && steps.back().contains("max_memory_bytes")) {
    const double bytes = steps.back().value("max_memory_bytes", 0.0);
    facts += row("peak memory", fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024)));
  }
  if (price_per_hour_) {
    const double price = seconds / 3600 * *price_per_hour_;
    facts += row("cost of the steps", fmt::format("{:.2f} at {:.2f} an hour", price, *price_per_hour_));
  }
  for (const std::string& note : summary_.notes) facts += row("note", note);
  std::string curves;
  const std::vector<Json> results = read_lines(summary_.output / "identity.jsonl");
  for (const char* name : kIdentityFigures)
    curves += curve_svg(curve_of(results, name, std::string("likeness: ") + name));
  curves += curve_svg(curve_of(read_lines(summary_.output / "validation.jsonl"), "loss", "loss on held-out photos"));
  for (const char* name : kCurves) curves += curve_svg(curve_of(steps, name, name));
  std::string warnings;
  for (const std::string& warning : warnings_) warnings += "<li>" + html_escaped(warning) + "</li>\n";
  if (!warnings.empty()) warnings = "<ul>" + warnings + "</ul>\n";
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
         "content=\"width=device-width\"><title>sdtune: " +
         html_escaped(title) + "</title><style>" + kStyle + "</style></head><body>\n<h1>" + html_escaped(title) +
         "</h1>\n<table>" + facts + "</table>\n" + section("Warnings", warnings) +
         section("Base and tuned, same seeds", last_validation(summary_.output / "samples")) +
         section("Curves", curves) +
         section("What was trained on", html_image(summary_.output / "contact_sheet.png", "contact sheet")) +
         section("Configuration", text_file(summary_.output / "config.yaml")) + "</body></html>\n";
}

}  // namespace sdtune::train
