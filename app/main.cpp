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

namespace {

// Without the destructors of static objects: LibTorch's take half as long as its start, to give back what the process's
// end frees anyway, and a thread may be left that waits for a lost rank inside a library. A profiler that NVIDIA's
// driver was told to load (CUDA_INJECTION64_PATH) writes its file from such a destructor.
[[noreturn]] void end_process(int code) {
  if (std::getenv("CUDA_INJECTION64_PATH") != nullptr && code != static_cast<int>(sdtune::ExitCode::kPeerLost)) {
    std::exit(code);
  }
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  int code = 0;
  try {
    sdtune::app::open_closed_streams();
    sdtune::app::end_with_caller();
    sdtune::app::ignore_closed_pipes();
    sdtune::app::take_ends_of_children();
    code = sdtune::app::run_command_line(std::vector<std::string>(argv + 1, argv + argc));
    sdtune::app::finish_output();
  } catch (...) {
    code = sdtune::app::report_exception(std::current_exception());
  }
  end_process(code);
}
