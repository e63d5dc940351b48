#include "train/prove/prove_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/observe/html_text.h"

namespace sdtune::train {

namespace {

constexpr const char* kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 "
    "1rem;color:#222;background:#fff}"
    "table{border-collapse:collapse}td,th{padding:.1rem 1rem .1rem 0;text-align:left;vertical-align:top}"
    ".failed{color:#b00020}.passed{color:#1b6e3c}.skipped,.unfinished{color:#667}img{max-width:100%}"
    "pre{overflow:auto;background:#f4f4f6;padding:1rem}";

std::string number_text(double value) {
  return fmt::format("{:.4g}", value);
}

std::string bar_text(const Check& check) {
  if (check.at_least && check.at_most) return number_text(*check.at_least) + " to " + number_text(*check.at_most);
  if (check.at_least) return "at least " + number_text(*check.at_least);
  return check.at_most ? "at most " + number_text(*check.at_most) : "no bar";
}

std::string check_row(const Check& check) {
  const std::string state = !check.has_bar() ? "" : check.passed() ? "passed" : "failed";
  return "<tr><td>" + html_escaped(check.name) + "</td><td>" + number_text(check.value) + "</td><td>" +
         bar_text(check) + "</td><td class=\"" + state + "\">" + state + "</td><td>" + html_escaped(check.source) +
         "</td></tr>\n";
}

std::string part_section(const PartResult& part, const std::filesystem::path& root) {
  const std::string state = status_name(part.status);
  std::string text = "<h2>" + html_escaped(part.name) + ": <span class=\"" + state + "\">" + state + "</span></h2>\n";
  if (!part.reason.empty()) text += "<p>" + html_escaped(part.reason) + "</p>\n";
  text += fmt::format("<p>{:.1f} s", part.seconds);
  if (part.peak_bytes > 0)
    text += fmt::format(", {:.2f} GiB at most", static_cast<double>(part.peak_bytes) / (1 << 30));
  text += "</p>\n";
  if (!part.checks.empty())
    text += "<table><tr><th>what</th><th>value</th><th>bar</th><th></th><th>why this bar</th></tr>\n";
  for (const Check& check : part.checks) text += check_row(check);
  if (!part.checks.empty()) text += "</table>\n";
  for (const std::string& image : part.images) text += html_image(root / image, part.name);
  return text;
}

std::string text_of(const Json& identity, const char* key) {
  return identity.value(key, std::string());
}

}  // namespace

bool ProveReport::has(PartStatus status) const {
  return std::any_of(parts.begin(), parts.end(), [&](const PartResult& part) { return part.status == status; });
}

std::string ProveReport::verdict() const {
  if (has(PartStatus::kFailed)) return "failed";
  return has(PartStatus::kUnfinished) ? "unfinished" : "passed";
}

Json report_json(const ProveReport& report) {
  Json parts = Json::array();
  for (const PartResult& part : report.parts) parts.push_back(part_json(part));
  return {{"verdict", report.verdict()},
          {"planted_fault", report.planted_fault.empty() ? Json() : Json(report.planted_fault)},
          {"identity", report.identity},
          {"machine", report.machine},
          {"parts", std::move(parts)}};
}

std::string report_html(const ProveReport& report, const std::filesystem::path& root) {
  const std::string title = "sdtune prove: " + text_of(report.identity, "device");
  std::string body = "<h1>" + html_escaped(title) + "</h1>\n<p>sdtune " +
                     html_escaped(text_of(report.identity, "sdtune")) + ", <b class=\"" + report.verdict() + "\">" +
                     report.verdict() + "</b></p>\n";
  if (!report.planted_fault.empty())
    body += "<p>A deliberate mistake of a test: " + html_escaped(report.planted_fault) + "</p>\n";
  for (const PartResult& part : report.parts) body += part_section(part, root);
  body += "<h2>machine</h2>\n<pre>" + html_escaped(report.machine.dump(1, ' ', false, Json::error_handler_t::replace)) +
          "</pre>\n";
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + html_escaped(title) +
         "</title><style>" + kStyle + "</style></head><body>\n" + body + "</body></html>\n";
}

std::string send_in_text(const ProveReport& report) {
  std::string failed;
  for (const PartResult& part : report.parts) {
    if (part.status == PartStatus::kFailed) failed += "  " + part.name + ": " + part.reason + "\n";
  }
  return "How to send in what sdtune found on this machine\n\n"
         "1. Look at prove.html. It holds generated images of the subject of your photos; prove.json holds none. "
         "Neither holds\n"
         "   your photos, and the words of both name this machine's GPU, driver and library versions.\n"
         "2. Open an issue where you got sdtune from, with this title:\n"
         "     prove: " +
         text_of(report.identity, "device") + ", " + report.verdict() +
         "\n"
         "3. Attach prove.json, and prove.html if its images may be seen by others.\n"
         "4. Where a part failed, attach its .log files from the folder work too; they name paths of this machine.\n" +
         (failed.empty() ? "" : "\nFailed parts:\n" + failed);
}

void write_report(FileSystem& files, const PartStore& store, const ProveReport& report) {
  const std::string json = report_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file_atomically(files, store.root() / "prove.json", json);
  write_file_atomically(files, store.root() / "prove.html", report_html(report, store.root()));
  write_file_atomically(files, store.root() / "send_in.txt", send_in_text(report));
}

}  // namespace sdtune::train
