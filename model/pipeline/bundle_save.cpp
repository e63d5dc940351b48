#include "model/base/whole_folder.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/bundle_configs.h"
#include "model/pipeline/scheduler_file.h"
#include "model/weights/diffusers_folder.h"
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

void save_text_encoder(FileSystem& files, const CLIPTextModel& encoder, const fs::path& folder, torch::Dtype dtype) {
  save_part(files, *encoder, encoder->config().to_json(), folder, kTextEncoderPart, dtype);
}

void write_parts(FileSystem& files, const ModelBundle& bundle, const fs::path& folder, torch::Dtype dtype) {
  save_tokenizer(files, bundle.tokenizer, folder / "tokenizer");
  save_text_encoder(files, bundle.text_encoder, folder / "text_encoder", dtype);
  if (bundle.is_xl()) {
    save_tokenizer(files, *bundle.tokenizer_2, folder / "tokenizer_2");
    save_text_encoder(files, bundle.text_encoder_2, folder / "text_encoder_2", dtype);
  }
  save_part(files, *bundle.unet, bundle.unet->config().to_json(), folder / "unet", kUNetPart, dtype);
  save_part(files, *bundle.vae, bundle.vae->config().to_json(), folder / "vae", kVaePart, dtype);
  save_scheduler(files, bundle, folder);
  write_file_atomically(files, folder / "model_index.json", index_of(bundle).to_json().dump(2) + "\n");
}

// What a loader will see.
void check_parts(const ModelBundle& bundle, const fs::path& folder, torch::Dtype dtype) {
  BundleConfigs::read(folder);
  const auto check = [&](const torch::nn::Module& module, const char* name, const PartKind& kind) {
    check_stored_weights(module, TensorSource::of_part(folder / name, kind.stem), kind.family, dtype);
  };
  check(*bundle.text_encoder, "text_encoder", kTextEncoderPart);
  if (bundle.is_xl()) check(*bundle.text_encoder_2, "text_encoder_2", kTextEncoderPart);
  check(*bundle.unet, "unet", kUNetPart);
  check(*bundle.vae, "vae", kVaePart);
}

}  // namespace

void save_bundle(FileSystem& files, const ModelBundle& bundle, const fs::path& folder, torch::Dtype dtype,
                 const std::function<void(const fs::path&)>& add) {
  write_folder_atomically(files, folder, [&](const fs::path& partial) {
    write_parts(files, bundle, partial, dtype);
    check_parts(bundle, partial, dtype);
    if (add) add(partial);
  });
}

}  // namespace sdtune::model
