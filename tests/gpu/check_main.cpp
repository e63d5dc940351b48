// Our kernels against plain loops on the CPU, in double where that matters. One line a check; exit 1 where one fails.
//
//   check_kernels [NAME...]    only the checks of these names
#include <exception>
#include <functional>
#include <utility>

#include "tests/gpu/checks.h"

int main(int count, char** arguments) {
  using namespace sdtune::test;
  const std::vector<std::pair<std::string, std::function<void()>>> checks = {
      {"random", check_random}, {"group_norm", check_group_norm}, {"geglu", check_geglu},
      {"adamw", check_adamw},   {"adamw_8bit", check_adamw_8bit}, {"gradient_norm", check_gradient_norm},
      {"launch", check_launch}};
  const std::vector<std::string> wanted(arguments + 1, arguments + count);
  for (const auto& [name, check] : checks) {
    bool is_wanted = wanted.empty();
    for (const std::string& word : wanted) is_wanted = is_wanted || word == name;
    if (!is_wanted) continue;
    try {
      check();
    } catch (const std::exception& error) {
      std::printf("%-28s FAIL %s\n", name.c_str(), error.what());
      return 1;
    }
  }
  std::printf("%d checks failed\n", failed_checks());
  return failed_checks() == 0 ? 0 : 1;
}
