#include "train/portrait/pretrain/stage_result.h"

#include <ATen/core/grad_mode.h>

#include <vector>

#include "model/base/error.h"
#include "model/files/json_file.h"
#include "model/files/sha256.h"
#include "model/weights/safetensors_file.h"

namespace sdtune::train::pretrain {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWeightsFile = "result.safetensors";
constexpr const char* kInfoFile = "result.json";

}  // namespace

void write_stage_result(FileSystem& files, const fs::path& folder, const ResumeFingerprint& identity,
                        std::int64_t steps, const model::NamedTensors& averages) {
  model::write_safetensors(files, folder / kWeightsFile, averages);
  const Json info{{"steps", steps}, {"settings", identity.settings}, {"sha256", sha256_of_file(folder / kWeightsFile)}};
  write_file_atomically(files, folder / kInfoFile, info.dump(2) + "\n");
}

bool has_stage_result(const fs::path& folder, std::int64_t steps) {
  if (!fs::exists(folder / kInfoFile) || !fs::exists(folder / kWeightsFile)) return false;
  try {
    const Json info = read_json(folder / kInfoFile);
    return info.is_object() && info.value("steps", Json()) == Json(steps);
  } catch (const Error&) {
    return false;  // damaged
  }
}

bool load_stage_result(const fs::path& folder, const std::string& stage, const ResumeFingerprint& identity,
                       std::int64_t steps, const model::NamedTensors& averages) {
  const fs::path path = folder / kInfoFile, weights = folder / kWeightsFile;
  if (!fs::exists(path)) return false;
  const Json info = read_json(path);
  JsonObject object(info, path.string());
  ResumeFingerprint saved;
  if (!object.has("settings")) object.fail("settings", "is missing");
  saved.settings = object.raw("settings").get<std::map<std::string, std::string>>();
  const std::vector<Problem> changes = fingerprint_changes(saved, identity);
  if (!changes.empty()) throw ConfigError(changes);
  if (const std::int64_t found = object.integer("steps"); found != steps) {
    throw CheckpointError(path.string(),
                          "is of other steps (got " + std::to_string(found) + "; wanted " + std::to_string(steps) + ")",
                          "bring its checkpoints too, or give --" + stage + "-steps " + std::to_string(found));
  }
  if (!fs::exists(weights) || sha256_of_file(weights) != object.string("sha256", ""))
    throw CheckpointError(weights.string(), "is not the file that " + std::string(kInfoFile) + " names");
  const model::SafetensorsFile file(weights);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, average] : averages) {
    if (!file.has(name) || file.tensor(name).sizes() != average.sizes())
      throw CheckpointError(weights.string(), "lacks " + name + " of this stage");
    torch::Tensor(average).copy_(file.tensor(name));
  }
  return true;
}

}  // namespace sdtune::train::pretrain
