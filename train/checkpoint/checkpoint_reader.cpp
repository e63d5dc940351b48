#include "train/checkpoint/checkpoint_reader.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "model/base/json.h"
#include "model/files/json_file.h"
#include "model/files/manifest.h"
#include "model/weights/safetensors_file.h"
#include "train/checkpoint/checkpoint_folder.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFiles[] = {kWeightsFile, kOptimizerFile, kStateFile};

void copy_stored(const model::SafetensorsFile& file, const std::string& name, const torch::Tensor& target) {
  if (!file.has(name)) throw CheckpointError(file.path().string(), "lacks the tensor " + name);
  const torch::Tensor stored = file.tensor(name);
  if (stored.sizes() != target.sizes()) {
    throw CheckpointError(file.path().string(), name + " has another shape than the model's parameter");
  }
  if (stored.scalar_type() != target.scalar_type()) {
    throw CheckpointError(file.path().string(), name + " is of another number type than this run keeps");
  }
  target.copy_(stored);
}

std::set<std::string> names_of(const std::vector<TrainedParameter>& parameters) {
  std::set<std::string> names;
  for (const TrainedParameter& parameter : parameters) names.insert(parameter.name);
  return names;
}

// States that no optimizer of this run keeps: neither this one, nor, by their names, those of other ranks' parameters.
void refuse_other_states(const model::SafetensorsFile& states, const Optimizer& optimizer, const NamedStates& kept,
                         const std::vector<TrainedParameter>& all) {
  std::set<std::string> known;
  for (const auto& [name, tensor] : kept) known.insert(name);
  const std::set<std::string> own = names_of(optimizer.parameters()), every = names_of(all);
  for (const auto& [name, entry] : states.header().tensors) {
    if (known.contains(name)) continue;
    std::string parameter = name;  // the state's own name may hold dots, too
    while (!parameter.empty() && !own.contains(parameter) && !every.contains(parameter)) {
      parameter.erase(parameter.find_last_of('.') == std::string::npos ? 0 : parameter.find_last_of('.'));
    }
    if (!parameter.empty() && !own.contains(parameter)) continue;
    throw CheckpointError(states.path().string(), "holds states that this run's optimizer does not keep");
  }
}

// Of parameters that other ranks update only the weight is here.
void load_weights_of_others(const model::SafetensorsFile& weights, const Optimizer& optimizer,
                            const std::vector<TrainedParameter>& all) {
  const std::set<std::string> own = names_of(optimizer.parameters());
  for (const TrainedParameter& parameter : all) {
    if (own.contains(parameter.name)) continue;
    torch::Tensor master = torch::empty_like(parameter.weight, torch::kFloat32);
    copy_stored(weights, parameter.name, master);
    parameter.weight.detach().copy_(master);
  }
}

std::vector<Problem> only_damaged(const std::vector<Problem>& warnings) {
  std::vector<Problem> problems = warnings;
  problems.push_back({"resume_from_checkpoint", "every checkpoint is damaged",
                      "restore one from a copy, or start again with --overwrite"});
  return problems;
}

// Those that the run made after `chosen`, before it is resumed from there: the next resume would take them.
void warn_of_newer(const fs::path& chosen, const std::vector<CheckpointFolder>& newest_first,
                   std::vector<Problem>& warnings) {
  std::error_code status;
  const auto found = std::find_if(newest_first.begin(), newest_first.end(), [&](const CheckpointFolder& one) {
    return fs::equivalent(one.path, chosen, status);
  });
  if (found == newest_first.begin() || found == newest_first.end()) return;
  warnings.push_back(
      {"resume_from_checkpoint",
       "newer checkpoints stay, the newest is " + newest_first.front().path.string() + " (got " + chosen.string() + ")",
       "latest, auto and a restart by sdtune launch take the newest: delete those that are not to be resumed"});
}

}  // namespace

std::vector<Problem> checkpoint_faults(const fs::path& checkpoint, PageCache cache) {
  if (!fs::exists(checkpoint / kManifestName)) {
    return {{checkpoint.string(), "has no manifest.json: it is half-written, or no checkpoint", ""}};
  }
  try {
    const Manifest manifest = Manifest::read(checkpoint);
    for (const char* name : kFiles) {
      const bool listed = std::any_of(manifest.files.begin(), manifest.files.end(),
                                      [name](const ManifestEntry& entry) { return entry.name == name; });
      if (!listed) return {{(checkpoint / kManifestName).string(), std::string("does not list ") + name, ""}};
    }
    std::vector<Problem> faults = manifest.verify(checkpoint, cache);
    if (faults.empty()) read_run_state(checkpoint);
    return faults;
  } catch (const Error& error) {
    return error.problems();
  }
}

FoundCheckpoint find_checkpoint(const std::string& resume_from_checkpoint, const fs::path& checkpoints) {
  FoundCheckpoint found;
  if (resume_from_checkpoint.empty()) return found;
  const bool is_auto = resume_from_checkpoint == "auto";
  if (!is_auto && resume_from_checkpoint != "latest") {
    std::error_code status;
    if (!fs::is_directory(resume_from_checkpoint, status)) {
      throw CheckpointError("resume_from_checkpoint", "there is no such folder (got " + resume_from_checkpoint +
                                                          "; allowed: latest, auto or a checkpoint's folder)");
    }
    const std::vector<Problem> faults = checkpoint_faults(resume_from_checkpoint);
    if (!faults.empty()) throw CheckpointError(faults);
    found.path = resume_from_checkpoint;
    warn_of_newer(*found.path, list_checkpoints(checkpoints), found.warnings);
    return found;
  }
  const std::vector<CheckpointFolder> candidates = list_checkpoints(checkpoints);
  for (const CheckpointFolder& candidate : candidates) {
    const std::vector<Problem> faults = checkpoint_faults(candidate.path);
    if (faults.empty()) {
      found.path = candidate.path;
      return found;
    }
    found.warnings.insert(found.warnings.end(), faults.begin(), faults.end());
  }
  if (!candidates.empty()) throw CheckpointError(only_damaged(found.warnings));
  if (!is_auto) {
    throw CheckpointError("resume_from_checkpoint", "nothing to resume in " + checkpoints.string() + " (got latest)",
                          "auto starts fresh when there is no checkpoint");
  }
  found.warnings.push_back(
      {"resume_from_checkpoint", "no checkpoint in " + checkpoints.string() + ": starting fresh", ""});
  return found;
}

RunState read_run_state(const fs::path& checkpoint) {
  const fs::path file = checkpoint / kStateFile;
  try {
    return RunState::from_json(read_json(file), file.string());
  } catch (const Error& error) {
    throw CheckpointError(error.problems());
  }
}

void load_optimizer(const fs::path& checkpoint, const RunState& state, Optimizer& optimizer,
                    const std::vector<TrainedParameter>& all) {
  const torch::NoGradGuard no_grad;
  try {
    const model::SafetensorsFile weights(checkpoint / kWeightsFile);
    const model::SafetensorsFile states(checkpoint / kOptimizerFile);
    for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
      copy_stored(weights, optimizer.parameters()[i].name, optimizer.masters()[i]);
    }
    const NamedStates kept = optimizer.states();
    for (const auto& [name, tensor] : kept) copy_stored(states, name, tensor);
    refuse_other_states(states, optimizer, kept, all);
    load_weights_of_others(weights, optimizer, all);
    if (weights.header().tensors.size() != std::max(all.size(), optimizer.parameters().size())) {
      throw CheckpointError(weights.path().string(), "holds parameters that this run does not train");
    }
  } catch (const WeightError& error) {
    throw CheckpointError(error.problems());
  }
  optimizer.set_updates(state.updates);
  optimizer.refresh_weights();
}

void load_averages(const fs::path& checkpoint, const model::NamedTensors& averages) {
  const torch::NoGradGuard no_grad;
  try {
    const model::SafetensorsFile file(checkpoint / kAveragesFile);
    for (const auto& [name, tensor] : averages) copy_stored(file, name, tensor);
  } catch (const WeightError& error) {
    throw CheckpointError(error.problems());
  }
}

}  // namespace sdtune::train
