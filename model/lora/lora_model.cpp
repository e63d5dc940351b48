#include "model/lora/lora_model.h"

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/files/model_fingerprint.h"
#include "model/files/model_note.h"
#include "model/lora/lora_file.h"
#include "model/pipeline/scheduler_file.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOtherBase = "name base and LoRA yourself: --model BASE --lora FILE";

fs::path base_of(const fs::path& folder) {
  const ModelNote note = read_model_note(folder);
  const std::string where = folder.string();
  if (note.base.empty()) throw WeightError(where, "is a LoRA and does not say of which base", kOtherBase);
  fs::path base;
  try {
    base = find_model_folder(note.base);
  } catch (const WeightError&) {
    throw WeightError(where, "is a LoRA of " + note.base + ", which is not there", kOtherBase);
  }
  if (model_fingerprint(base) != note.base_fingerprint) {
    throw WeightError(where, "is a LoRA of " + note.base + ", whose weights have changed since", kOtherBase);
  }
  return base;
}

}  // namespace

bool is_lora_folder(const fs::path& folder) {
  return is_file(folder / kLoraFile) && !is_file(folder / "model_index.json");
}

ModelBundle load_model(const fs::path& folder, torch::Dtype dtype, torch::Device device) {
  if (!is_lora_folder(folder)) return load_bundle(folder, dtype, device);
  ModelBundle bundle = load_bundle(base_of(folder), dtype, device);
  attach_lora(bundle, "model", read_lora(folder / kLoraFile, bundle));
  replace_scheduler(bundle, folder);
  return bundle;
}

}  // namespace sdtune::model
