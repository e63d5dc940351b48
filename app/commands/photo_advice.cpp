#include "app/commands/photo_advice.h"

#include <cstdio>

#include "model/base/printable.h"

namespace sdtune::app {

void print_advice(const train::Diagnosis& advice) {
  for (const Problem& warning : advice.warnings) {
    std::fprintf(stderr, "sdtune: warning: %s\n", warning.line().c_str());
  }
  for (const std::string& note : advice.notes) std::fprintf(stderr, "sdtune: note: %s\n", printable(note).c_str());
}

Json problems_json(const std::vector<Problem>& problems) {
  Json list = Json::array();
  for (const Problem& problem : problems) {
    list.push_back({{"where", problem.where}, {"what", problem.what}, {"hint", problem.hint}});
  }
  return list;
}

}  // namespace sdtune::app
