#include "app/ui/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace sdtune::app {

bool is_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return isatty(fileno(stream)) == 1 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

int terminal_columns(std::FILE* stream) {
  constexpr int kDefault = 100;
  constexpr int kNarrowest = 20;
  constexpr int kWidest = 1000;
  const char* given = std::getenv("COLUMNS");
  int columns = given == nullptr ? 0 : std::atoi(given);
  winsize size = {};
  if (columns <= 0 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns <= 0) return kDefault;
  return columns < kNarrowest ? kNarrowest : columns > kWidest ? kWidest : columns;
}

bool takes_output(std::FILE* stream) {
  pollfd request = {fileno(stream), POLLOUT, 0};
  if (request.fd < 0) return true;  // memory
  return poll(&request, 1, 0) == 1 && (request.revents & POLLOUT) != 0;
}

}  // namespace sdtune::app
