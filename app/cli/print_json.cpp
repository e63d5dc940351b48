#include "app/cli/print_json.h"

#include <cstdio>

namespace sdtune::app {

void print_json(const Json& report) {
  std::puts(report.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace sdtune::app
