// A training's command line for a restart: it resumes where the run's newest checkpoint is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sdtune::app {

// What the first attempt was told, and what it has left.
struct AttemptState {
  std::string resume_from_checkpoint;  // as given
  bool overwrite = false;              // as given
  bool has_run = false;                // its run is in the folder, and no longer an earlier one
  bool has_checkpoint = false;         // whole, in the run's own folder
};

// `words` of the first attempt with what a restart needs at their end, where it wins:
// - the newest checkpoint of the run, or a new run if there is none yet; a folder that was given is resumed from again
//   as long as the run has no checkpoint of its own;
// - the earlier run is not cleared a second time once it has been.
std::vector<std::string> restart_words(std::vector<std::string> words, const AttemptState& state);

// Whether a run's folder of checkpoints, which need not exist, holds one that is whole: step-DIGITS with a manifest.
// A save that was killed leaves step-DIGITS.tmp, with its manifest where the rename alone is missing.
bool has_whole_checkpoint(const std::filesystem::path& checkpoints);

}  // namespace sdtune::app
