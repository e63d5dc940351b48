#include "train/run/export_model.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "model/files/atomic_folder.h"
#include "model/files/install_paths.h"
#include "model/files/model_fingerprint.h"
#include "model/files/model_note.h"
#include "model/lora/lora_file.h"
#include "model/pipeline/scheduler_file.h"
#include "train/config/base_defaults.h"
#include "train/config/concept_options.h"
#include "train/data/trigger.h"
#include "train/parameters/starting_values.h"
#include "train/run/lora_metadata.h"
#include "train/shard/shard_gather.h"

namespace sdtune::train {
namespace {

// The trigger word, or that of the (first) instance prompt, unless every photo has a caption of its own that does
// without it.
std::string trained_trigger(const Run& run) {
  const DataOptions& options = run.config.data;
  const ConceptOptions first = concepts_of(options).front();
  const std::string own = trigger_of(first.instance_prompt, first.class_prompt);
  const std::string trigger = options.trigger_word.empty() ? own : options.trigger_word;
  const std::vector<Photo>& photos = run.data.photos.photos;
  const bool is_said = std::any_of(photos.begin(), photos.end(),
                                   [&](const Photo& photo) { return says_trigger(photo.caption, trigger); });
  return is_said ? trigger : std::string();
}

model::LoraWeights trained_lora(const Run& run, const std::vector<torch::Tensor>& trained) {
  model::LoraWeights weights;
  for (std::size_t i = 0; i < run.shards->parameters().size(); ++i) {
    const std::string& name = run.shards->parameters()[i].name;
    const std::size_t end = name.rfind(".lora_");
    model::LoraMatrices& matrices = weights[name.substr(0, end)];
    (name.substr(end) == ".lora_A.weight" ? matrices.down : matrices.up) = trained[i];
    matrices.alpha = run.config.lora.alpha();
  }
  return weights;
}

// As a later command finds it from any folder: a bundled base and a hub id by name.
std::string lasting_name(const std::string& base) {
  std::error_code status;
  if (!std::filesystem::is_directory(base, status)) return base;
  for (const std::string_view bundled : kBundledBases) {  // where no base is given its folder is
    std::string name(bundled);
    if (std::filesystem::equivalent(base, find_bundled_base(name), status)) return name;
  }
  return std::filesystem::absolute(base).lexically_normal().string();
}

// In both namings, so that diffusers and A1111-style tools load it as it is.
void export_lora(FileSystem& files, Run& run, const std::vector<torch::Tensor>& trained, std::int64_t step) {
  const model::LoraWeights weights = trained_lora(run, trained);
  const std::string name = run.folder.name();
  const ModelNote note{.trigger = trained_trigger(run),
                       .rendered_people = read_model_note(run.bundle.folder).rendered_people,
                       .base = lasting_name(run.config.run.base),
                       .base_fingerprint = model_fingerprint(run.bundle.folder)};
  write_folder_atomically(files, run.folder.model(), [&](const std::filesystem::path& folder) {
    model::write_lora(files, folder / model::kLoraFile, run.bundle, weights, model::LoraStyle::kDiffusers);
    model::write_lora(files, folder / (name + ".safetensors"), run.bundle, weights, model::LoraStyle::kKohya, {},
                      lora_metadata(run, name, note.trigger, step));
    // With the base's own scheduler images would be wrong, so the LoRA carries the one it was trained with.
    if (run.config.objective.rescale_betas_zero_snr) model::save_scheduler(files, run.bundle, folder);
    write_model_note(files, note, folder);
  });
}

// The parts that a full run did not train. A half-precision run has them rounded in its modules.
std::vector<std::string> unchanged_parts(const Run& run) {
  if (run.trains_text()) return {"vae"};
  return {"vae", "text_encoder", "text_encoder_2"};
}

void export_bundle(FileSystem& files, Run& run, const std::vector<torch::Tensor>& trained) {
  for (std::size_t i = 0; i < run.shards->parameters().size(); ++i) {
    torch::Tensor weight = run.shards->parameters()[i].weight;
    weight.set_data(trained[i]);
  }
  // What the same components hold besides: a half-precision run rounded it in its modules.
  const std::vector<ModuleParameter> fixed =
      fixed_parameters(run.bundle, run.trains_text(), run.config.run.trainable_layers);
  const std::vector<torch::Tensor> exact = starting_values(run.bundle, fixed);
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    torch::Tensor weight = fixed[i].weight;
    weight.set_data(exact[i]);
  }
  const ModelNote note{.trigger = trained_trigger(run),
                       .rendered_people = read_model_note(run.bundle.folder).rendered_people};
  const auto add = [&](const std::filesystem::path& folder) {
    write_model_note(files, note, folder);
    // Whoever tunes the result on starts from what suits its base.
    for (const std::filesystem::path& defaults : own_base_defaults(run.bundle.folder)) {
      write_file_atomically(files, folder / defaults.filename(), read_file(defaults));
    }
  };
  const model::SaveOptions options{.unchanged = unchanged_parts(run), .add = add};
  model::save_bundle(files, run.bundle, run.folder.model(), torch::kFloat32, options);
}

model::NamedTensors own_results(const Run& run) {
  if (run.average) return run.average->values();
  model::NamedTensors masters;
  for (std::size_t i = 0; i < run.optimizer->parameters().size(); ++i) {
    masters.emplace_back(run.optimizer->parameters()[i].name, run.optimizer->masters()[i]);
  }
  return masters;
}

}  // namespace

std::vector<torch::Tensor> result_weights(const Run& run) {
  const model::NamedTensors own = own_results(run);
  std::vector<torch::Tensor> weights;
  if (!run.shards->is_sharded()) {
    for (const auto& [name, tensor] : own) weights.push_back(tensor);
    return weights;
  }
  const std::vector<TrainedParameter>& parameters = run.shards->parameters();
  if (!run.average && run.dtype == torch::kFloat32) {  // every rank has them as its weights
    for (const TrainedParameter& parameter : parameters) weights.push_back(parameter.weight.detach());
    return weights;
  }
  ShardGather gather(*run.group, own);
  const std::vector<torch::Tensor> all = gather.read_all();
  std::map<std::string, torch::Tensor> by_name;
  for (std::size_t i = 0; i < all.size(); ++i) by_name.emplace(gather.tensors()[i].name, all[i]);
  if (run.group->is_first()) {
    for (const TrainedParameter& parameter : parameters) weights.push_back(by_name.at(parameter.name));
  }
  return weights;
}

void export_model(FileSystem& files, Run& run, const std::vector<torch::Tensor>& weights, std::int64_t step) {
  const torch::NoGradGuard no_grad;
  if (run.is_lora()) {
    export_lora(files, run, weights, step);
  } else {
    export_bundle(files, run, weights);
  }
}

}  // namespace sdtune::train
