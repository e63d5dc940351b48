#include <cmath>

#include "model/base/error.h"
#include "model/pipeline/bundle.h"
#include "model/weights/diffusers_folder.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

// "folder/" and "folder" are the same folder; only the second has a name.
fs::path without_trailing_slash(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

fs::path beside(const fs::path& folder, const char* suffix) {
  std::string name = ".";
  name.append(folder.filename().string()).append(suffix);
  return folder.parent_path() / name;
}

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
  // A null stands for a default that JSON cannot write (minus infinity); diffusers takes its default for an absent key.
  Json scheduler = Json::object();
  for (const auto& [key, value] : bundle.scheduler_config.items()) {
    if (!value.is_null() && !(value.is_number_float() && !std::isfinite(value.get<double>()))) scheduler[key] = value;
  }
  scheduler["_class_name"] = bundle.scheduler_class;
  files.create_directories(folder / "scheduler");
  write_file_atomically(files, folder / "scheduler" / "scheduler_config.json", scheduler.dump(2) + "\n");
  write_file_atomically(files, folder / "model_index.json", index_of(bundle).to_json().dump(2) + "\n");
}

// No file system replaces one folder by another in a single step, so the old one steps aside first.
void put_in_place(FileSystem& files, const fs::path& written, const fs::path& folder) {
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  const fs::path old = beside(folder, ".old");
  if (!fs::exists(folder)) {
    files.rename(written, folder);
    files.sync_directory(parent);
    return;
  }
  if (fs::exists(old)) files.remove_tree(old);
  files.rename(folder, old);
  try {
    files.rename(written, folder);
  } catch (const StorageError&) {
    files.rename(old, folder);
    throw;
  }
  files.sync_directory(parent);
  files.remove_tree(old);
}

// A full disk must not stay full of half a model; why the save failed is what matters, so a second failure is nothing.
void remove_quietly(FileSystem& files, const fs::path& folder) {
  try {
    files.remove_tree(folder);
  } catch (const StorageError&) {
  }
}

}  // namespace

void save_bundle(FileSystem& files, const ModelBundle& bundle, const fs::path& folder, torch::Dtype dtype) {
  const fs::path target = without_trailing_slash(folder);
  const fs::path partial = beside(target, ".partial");
  if (fs::exists(partial)) files.remove_tree(partial);  // of a save that was killed
  try {
    files.create_directories(partial);
    write_parts(files, bundle, partial, dtype);
    put_in_place(files, partial, target);
  } catch (const StorageError&) {
    remove_quietly(files, partial);
    throw;
  }
}

}  // namespace sdtune::model
