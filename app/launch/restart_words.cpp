#include "app/launch/restart_words.h"

namespace sdtune::app {

std::vector<std::string> restart_words(std::vector<std::string> words, const AttemptState& state) {
  if (state.overwrite && !state.has_run) return words;
  if (state.overwrite) words.emplace_back("--overwrite=false");
  const std::string& given = state.resume_from_checkpoint;
  if (given.empty() || given == "auto") {
    words.emplace_back("--resume-from-checkpoint=auto");
  } else if (given != "latest" && state.has_checkpoint) {
    words.emplace_back("--resume-from-checkpoint=latest");
  }
  return words;
}

}  // namespace sdtune::app
