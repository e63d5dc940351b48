#include "model/base/error.h"

#include <algorithm>

#include "model/base/printable.h"

namespace sdtune {
namespace {

std::string join(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.line();
  }
  return text;
}

}  // namespace

std::string Problem::line() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += "; " + hint;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return printable(text);  // names of tensors, files and keys are not to be trusted
}

Error::Error(ExitCode code, std::vector<Problem> problems)
    : std::runtime_error(join(problems)), code_(code), problems_(std::move(problems)) {}

Error::Error(ExitCode code, std::string where, std::string what, std::string hint)
    : Error(code, std::vector<Problem>{Problem{std::move(where), std::move(what), std::move(hint)}}) {}

}  // namespace sdtune
