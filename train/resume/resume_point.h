// The checkpoint that a run resumes from, found and compared before anything is loaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "train/checkpoint/run_state.h"

namespace sdtune::train {

struct ResumePoint {
  std::filesystem::path checkpoint;  // empty: a fresh start
  RunState state;                    // of the checkpoint
  std::vector<Problem> faults;       // of the checkpoint, where it cannot be used
  std::vector<Problem> warnings;     // damaged checkpoints passed over; that there was none to resume from
  std::string base_hash;             // of the base's files, where the comparison needed it
};

// The checkpoint's value of an option, "" for a fresh start and where it has none.
inline std::string recorded_value(const ResumePoint& resume, const std::string& option) {
  const auto found = resume.state.fingerprint.settings.find(option);
  if (resume.checkpoint.empty() || found == resume.state.fingerprint.settings.end()) return "";
  std::string name = found->second;  // as YAML has it: "no" would be a bool without its quotes
  std::erase(name, '"');
  return name;
}

}  // namespace sdtune::train
