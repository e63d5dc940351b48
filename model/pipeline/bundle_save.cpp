#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/files/atomic_folder.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/scheduler_file.h"
#include "model/weights/copied_part.h"
#include "model/weights/diffusers_folder.h"
#include "model/weights/load_module.h"
#include "model/weights/stored_weights.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

ModelIndex index_of(const ModelBundle& bundle) {
  const auto class_of = [](const CLIPTextModel& encoder) {
    return encoder->config().with_projection ? "CLIPTextModelWithProjection" : "CLIPTextModel";
  };
  ModelIndex index;
  index.pipeline_class = bundle.pipeline_class;
  index.scheduler_class = bundle.scheduler_class;
  index.text_encoder_class = class_of(bundle.text_encoder);
  if (bundle.text_encoder_2) index.text_encoder_2_class = class_of(bundle.text_encoder_2);
  index.force_zeros_for_empty_prompt = bundle.force_zeros_for_empty_prompt;
  return index;
}

void save_tokenizer(FileSystem& files, const ClipTokenizer& tokenizer, const fs::path& folder) {
  files.create_directories(folder);
  tokenizer.save(files, folder);
}

struct Part {
  const char* name;
  PartKind kind;
  const torch::nn::Module& module;
  Json config;
  std::function<std::shared_ptr<torch::nn::Module>(torch::Dtype)> load;  // as bundle.folder has it
};

// A part of the bundle as one of the above.
template <typename Module>
Part part_of(const ModelBundle& bundle, const char* name, const PartKind& kind, const Module& module) {
  const auto load = [&bundle, &module, name, kind](torch::Dtype dtype) -> std::shared_ptr<torch::nn::Module> {
    return load_module<Module>(module->config(), bundle.folder / name, kind, dtype, torch::kCPU).ptr();
  };
  return {name, kind, *module, module->config().to_json(), load};
}

std::vector<Part> parts_of(const ModelBundle& bundle) {
  std::vector<Part> parts = {part_of(bundle, "text_encoder", kTextEncoderPart, bundle.text_encoder),
                             part_of(bundle, "unet", kUNetPart, bundle.unet),
                             part_of(bundle, "vae", kVaePart, bundle.vae)};
  if (bundle.is_xl()) {
    parts.push_back(part_of(bundle, "text_encoder_2", kTextEncoderPart, bundle.text_encoder_2));
  }
  return parts;
}

bool is_stored_as(const fs::path& folder, const PartKind& kind, torch::Dtype dtype) {
  const TensorSource source = TensorSource::of_part(folder, kind.stem);
  const std::vector<std::string> names = source.names();
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const torch::Tensor tensor = source.tensor(name);
    return !tensor.is_floating_point() || tensor.scalar_type() == dtype;
  });
}

void write_module(FileSystem& files, const Part& part, const torch::nn::Module& module, const fs::path& folder,
                  torch::Dtype dtype) {
  save_part(files, module, part.config, folder, part.kind, dtype);
  const fs::path stored = folder / (std::string(part.kind.stem) + ".safetensors");
  check_stored_weights(module, TensorSource::of_file(stored, PageCache::kDrop), part.kind.family, dtype);
}

// Byte by byte, or, where it is stored in another dtype, what is stored, in `dtype`: loaders want one for all parts.
void write_unchanged(FileSystem& files, const Part& part, const fs::path& from, const fs::path& to,
                     torch::Dtype dtype) {
  if (is_stored_as(from, part.kind, dtype)) {
    copy_part(files, from, to, part.kind);
  } else {
    write_module(files, part, *part.load(dtype), to, dtype);
  }
}

void save_tokenizers_and_scheduler(FileSystem& files, const ModelBundle& bundle, const fs::path& folder) {
  save_tokenizer(files, bundle.tokenizer, folder / "tokenizer");
  if (bundle.is_xl()) save_tokenizer(files, *bundle.tokenizer_2, folder / "tokenizer_2");
  save_scheduler(files, bundle, folder);
  write_file_atomically(files, folder / "model_index.json", index_of(bundle).to_json().dump(2) + "\n");
}

}  // namespace

void save_bundle(FileSystem& files, const ModelBundle& bundle, const fs::path& folder, torch::Dtype dtype,
                 const SaveOptions& options) {
  const std::vector<Part> parts = parts_of(bundle);
  const auto is_unchanged = [&](const Part& part) {
    return std::find(options.unchanged.begin(), options.unchanged.end(), part.name) != options.unchanged.end();
  };
  write_folder_atomically(files, folder, [&](const fs::path& partial) {
    for (const Part& part : parts) {
      if (is_unchanged(part)) {
        write_unchanged(files, part, bundle.folder / part.name, partial / part.name, dtype);
      } else {
        write_module(files, part, part.module, partial / part.name, dtype);
      }
    }
    save_tokenizers_and_scheduler(files, bundle, partial);
    BundleConfigs::read(partial);  // what a loader will see
    if (options.add) options.add(partial);
  });
}

}  // namespace sdtune::model
