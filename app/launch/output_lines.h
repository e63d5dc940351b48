// A rank's output in whole lines, each with the rank in front.
#pragma once

#include <string>
#include <string_view>

namespace sdtune::app {

class OutputLines {
 public:
  explicit OutputLines(std::string prefix) : prefix_(std::move(prefix)) {}

  // The lines that `bytes` complete, each with prefix and line break. A line without end is cut after 64 KiB.
  std::string add(std::string_view bytes);
  // What is left without a line break, as a line.
  std::string finish();

 private:
  std::string prefix_;
  std::string open_;  // the line that is not complete
};

}  // namespace sdtune::app
