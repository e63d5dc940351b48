#include "app/cli/caller.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "model/base/json.h"

namespace sdtune::app {

void end_with_caller() {
#ifdef __linux__
  const char* caller = std::getenv("SDTUNE_CALLER");
  if (caller == nullptr) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It ended before the line above.
  if (std::to_string(::getppid()) != caller) ::_exit(128 + SIGTERM);
  ::unsetenv("SDTUNE_CALLER");  // it is the caller of this process, not of those that this one starts
#endif
}

bool tell_caller(const std::string& type, ExitCode code, const std::vector<Problem>& problems) {
  const char* path = std::getenv("SDTUNE_ERROR_FILE");
  if (path == nullptr || *path == '\0') return false;
  Json report{{"error", type}, {"exit_code", static_cast<int>(code)}, {"problems", Json::array()}};
  for (const Problem& problem : problems) {
    report["problems"].push_back({{"where", problem.where}, {"what", problem.what}, {"hint", problem.hint}});
  }
  const std::string text = report.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && is_written;
}

}  // namespace sdtune::app
