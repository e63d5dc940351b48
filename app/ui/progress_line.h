// One line that is written over and over on a terminal, or now and then into a log.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace sdtune::app {

class ProgressLine {
 public:
  using Clock = std::function<double()>;  // s, steady

  explicit ProgressLine(std::FILE* stream);  // follows a terminal that goes away into the log (hangup.h)
  ProgressLine(std::FILE* stream, bool terminal, int columns, Clock clock);

  // The state of things. On a terminal at most ten times a second, elsewhere at most every 30 s, unless `force`.
  void update(const std::string& text, bool force = false);
  // update() of a bar: "label 3/10 [===>    ] tail"; without the bar where it does not fit or no terminal is there.
  void update_bar(const std::string& label, std::int64_t done, std::int64_t total, const std::string& tail, bool force);
  // A line that stays, above the state.
  void message(const std::string& text);
  // Ends the state's line: what follows begins on its own.
  void finish();

 private:
  void draw(const std::string& text);
  bool is_due(bool force);
  // A terminal that is gone becomes a log; one of another width than before has lines of that.
  void follow_terminal();

  std::FILE* stream_;
  bool terminal_;
  bool may_hang_up_ = false;
  int columns_;
  Clock clock_;
  double last_ = -1e9;  // when the state was last written
  std::string shown_;   // the state on the terminal's line, "" when the line is free
};

}  // namespace sdtune::app
