// Output after the terminal is gone: a dropped ssh must not end a run, and what the run says then goes to a file.
#pragma once

#include <filesystem>

namespace sdtune::app {

// From now on SIGHUP ends nothing: stdout and stderr, where they are terminals, continue at the end of `log`, which is
// made with its folders when it is needed first; /dev/null where it cannot be. A SIGHUP that this process was told to
// ignore (nohup) stays ignored.
void keep_output_after_hangup(const std::filesystem::path& log);

// Whether output goes to that file by now. A terminal that went away without a signal (disown) is noticed here.
bool lost_terminal();

}  // namespace sdtune::app
