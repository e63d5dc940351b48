// What exact resume needs besides tensors: where the run stands, and what it was a run of. Random draws are functions
// of the step, so there is no generator state; names and numbers know nothing of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/core/cpu_implementation.h"
#include "train/precision/grad_scaler.h"

namespace sdtune::train {

// Everything that a run's numbers depend on, as text by name, so that a difference can be named.
struct ResumeFingerprint {
  std::map<std::string, std::string> settings;  // option -> value
  std::map<std::string, std::string> images;    // photo or class image -> hash of file and caption
  std::string base_hash;                        // of the base model's files

  bool operator==(const ResumeFingerprint&) const = default;
};

struct RunState {
  std::int64_t step = 0;             // optimizer steps done, skipped ones included: the next step's index
  std::int64_t updates = 0;          // those that were applied: position of the learning rate and of Adam
  std::int64_t effective_batch = 1;  // photos a step
  std::int64_t attempt = 1;          // 1 for a fresh run, one more at each resume
  std::optional<model::CpuImplementation> implementation;  // unset for a fresh run
  GradScalerState scaler;
  ResumeFingerprint fingerprint;

  Json to_json() const;
  // Throws WeightError naming `where` and the key.
  static RunState from_json(const Json& json, const std::string& where);
};

// Why a run of fingerprint `now` cannot resume from one of fingerprint `saved`: a line for each setting or image that
// changed, empty when none did.
std::vector<Problem> fingerprint_changes(const ResumeFingerprint& saved, const ResumeFingerprint& now);

}  // namespace sdtune::train
