#include "train/checkpoint/best_weights.h"

#include "model/base/json.h"
#include "model/files/atomic_folder.h"
#include "model/files/json_file.h"
#include "model/files/manifest.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/hashing_file_system.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStepFile = "best.json";

torch::Tensor stored_weight(const model::SafetensorsFile& file, const TrainedParameter& parameter) {
  const std::string where = file.path().string();
  if (!file.has(parameter.name)) throw CheckpointError(where, "lacks the tensor " + parameter.name);
  torch::Tensor stored = file.tensor(parameter.name);
  if (stored.sizes() != parameter.weight.sizes() || stored.scalar_type() != torch::kFloat32) {
    throw CheckpointError(where, parameter.name + " has another shape or number type than the model's parameter");
  }
  return stored.clone().to(parameter.weight.device());  // a copy: the file may be replaced while it is in use
}

BestStep read_step_file(const fs::path& file) {
  const Json json = read_json(file);
  const bool is_ours = json.is_object() && json.contains("exam") && json["exam"].is_string() && json.contains("step") &&
                       json["step"].is_number_integer();
  if (!is_ours) throw CheckpointError(file.string(), "has no evaluation digest and step");
  return {json["exam"], json["step"]};
}

}  // namespace

void write_best_weights(FileSystem& files, const fs::path& folder, const std::vector<TrainedParameter>& parameters,
                        const std::vector<torch::Tensor>& weights, const BestStep& step) {
  write_folder_atomically(files, folder, [&](const fs::path& partial) {
    HashingFileSystem hashing(files, partial);
    model::NamedTensors named;
    for (std::size_t i = 0; i < weights.size(); ++i) named.emplace_back(parameters[i].name, weights[i]);
    model::write_safetensors(hashing, partial / kWeightsFile, std::move(named));
    const Json json = {{"exam", step.exam}, {"step", step.step}};
    write_file_atomically(hashing, partial / kStepFile, json.dump(2) + "\n");
    hashing.manifest().write(files, partial);
    const std::vector<Problem> faults = Manifest::read(partial).verify(partial, PageCache::kDrop);
    if (!faults.empty()) throw StorageError(faults);
  });
}

std::vector<torch::Tensor> read_best_weights(const fs::path& folder, const std::vector<TrainedParameter>& parameters,
                                             const BestStep& step) {
  try {
    const std::vector<Problem> faults = Manifest::read(folder).verify(folder);
    if (!faults.empty()) throw CheckpointError(faults);
    if (read_step_file(folder / kStepFile) != step) {
      throw CheckpointError(folder.string(), "holds other weights than those of step " + std::to_string(step.step));
    }
    const model::SafetensorsFile file(folder / kWeightsFile);
    std::vector<torch::Tensor> weights;
    for (const TrainedParameter& parameter : parameters) weights.push_back(stored_weight(file, parameter));
    return weights;
  } catch (const Error& error) {  // a file that the disk cannot read is a DataError
    throw CheckpointError(error.problems());
  }
}

}  // namespace sdtune::train
