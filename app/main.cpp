// The program `sdtune`: hands the words of the command line on, and turns every exception into an error line and an
// exit code.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "app/cli/caller.h"
#include "app/cli/error_report.h"
#include "app/cli/stop_signals.h"
#include "app/commands/command.h"
#include "model/base/error.h"

int main(int argc, char** argv) {
  try {
    sdtune::app::end_with_caller();
    sdtune::app::ignore_closed_pipes();
    const int code = sdtune::app::run_command_line(std::vector<std::string>(argv + 1, argv + argc));
    sdtune::app::finish_output();
    return code;
  } catch (...) {
    const int code = sdtune::app::report_exception(std::current_exception());
    // A thread may be left that waits for the lost rank inside a library: nothing may be destroyed under it.
    if (code == static_cast<int>(sdtune::ExitCode::kPeerLost)) {
      std::fflush(nullptr);
      std::_Exit(code);
    }
    return code;
  }
}
