#include "app/ui/progress_line.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/ui/hangup.h"
#include "app/ui/terminal.h"

namespace sdtune::app {
namespace {

constexpr double kTerminalInterval = 0.1;  // s
constexpr double kLogInterval = 30;        // s

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* stream)
    : ProgressLine(stream, is_terminal(stream), terminal_columns(stream), steady_seconds) {
  may_hang_up_ = terminal_;
}

ProgressLine::ProgressLine(std::FILE* stream, bool terminal, int columns, Clock clock)
    : stream_(stream), terminal_(terminal), columns_(columns), clock_(std::move(clock)) {}

void ProgressLine::follow_terminal() {
  if (!may_hang_up_) return;
  // A line that is wider than the window has become would wrap, and each further one begin below its rest.
  columns_ = terminal_columns(stream_);
  shown_ = shown_.substr(0, static_cast<std::size_t>(columns_ - 1));
  if (!lost_terminal()) return;
  terminal_ = may_hang_up_ = false;
  shown_.clear();
}

bool ProgressLine::is_due(bool force) {
  follow_terminal();
  const double now = clock_();
  if (!force && now - last_ < (terminal_ ? kTerminalInterval : kLogInterval)) return false;
  last_ = now;
  return true;
}

void ProgressLine::draw(const std::string& text) {
  if (!terminal_) {
    std::fprintf(stream_, "%s\n", text.c_str());
    std::fflush(stream_);
    return;
  }
  // Spaces instead of an escape sequence wipe what was longer before. One column stays free, or the terminal would
  // wrap.
  std::string line = text.substr(0, static_cast<std::size_t>(columns_ - 1));
  const std::size_t length = line.size();
  line.resize(std::max(length, shown_.size()), ' ');
  std::fprintf(stream_, "\r%s", line.c_str());
  std::fflush(stream_);
  shown_ = line.substr(0, length);
}

void ProgressLine::update(const std::string& text, bool force) {
  if (!is_due(force)) return;
  if (!terminal_ || takes_output(stream_)) draw(text);
}

void ProgressLine::update_bar(const std::string& label, std::int64_t done, std::int64_t total, const std::string& tail,
                              bool force) {
  if (!is_due(force)) return;
  std::string text = label + " " + std::to_string(done);
  if (total > 0) text.append("/").append(std::to_string(total));
  const int room = columns_ - static_cast<int>(text.size() + tail.size()) - 6;
  constexpr int kNarrowestBar = 8;
  constexpr int kWidestBar = 30;
  if (terminal_ && total > 0 && room >= kNarrowestBar) {
    const int width = std::min(room, kWidestBar);
    const auto filled = static_cast<std::size_t>(width * std::min(done, total) / total);
    std::string bar(filled, '=');
    if (filled < static_cast<std::size_t>(width)) bar += '>';
    bar.resize(static_cast<std::size_t>(width), ' ');
    text += " [" + bar + "]";
  }
  if (!tail.empty()) text += "  " + tail;
  if (!terminal_ || takes_output(stream_)) draw(text);
}

void ProgressLine::message(const std::string& text) {
  follow_terminal();
  if (terminal_ && !shown_.empty()) {
    std::fprintf(stream_, "\r%s\r", std::string(shown_.size(), ' ').c_str());
  }
  std::fprintf(stream_, "%s\n", text.c_str());
  const std::string state = std::exchange(shown_, "");
  if (terminal_ && !state.empty()) draw(state);
  std::fflush(stream_);
}

void ProgressLine::finish() {
  follow_terminal();
  if (terminal_ && !shown_.empty()) std::fputc('\n', stream_);
  shown_.clear();
  std::fflush(stream_);
}

}  // namespace sdtune::app
