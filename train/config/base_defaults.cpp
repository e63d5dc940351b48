#include "train/config/base_defaults.h"

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "model/files/install_paths.h"
#include "model/files/json_file.h"

namespace sdtune::train {
namespace {

constexpr const char* kOwnStart = "sdtune_defaults";  // no file of configs/ begins so

std::filesystem::path own_defaults(const std::filesystem::path& base_folder, const std::string& method) {
  return base_folder / (kOwnStart + (method == "full" ? std::string() : "_" + method) + ".yaml");
}

}  // namespace

std::string base_family(const std::filesystem::path& base_folder) {
  try {
    const Json index = read_json(base_folder / "model_index.json");
    const Json unet = read_json(base_folder / "unet" / "config.json");
    // Smaller models of the same classes keep sdtune's plain defaults: the presets' rates are for the full size.
    const Json& channels = unet.at("block_out_channels");
    if (channels.at(0) != 320) return "";
    if (index.at("_class_name") == "StableDiffusionXLPipeline") return "sdxl";
    const Json& width = unet.at("cross_attention_dim");
    if (width == 768) return "sd15";
    return width == 1024 ? "sd21" : "";
  } catch (const Error&) {
    return "";
  } catch (const Json::exception&) {
    return "";
  }
}

std::filesystem::path find_base_defaults(const std::filesystem::path& base_folder, const std::string& method) {
  const std::filesystem::path own = own_defaults(base_folder, method);
  if (is_file(own)) return own;
  return find_family_defaults(base_family(base_folder), method);
}

bool is_own_default(const std::filesystem::path& defaults) {
  return defaults.filename().string().starts_with(kOwnStart);
}

std::vector<std::filesystem::path> own_base_defaults(const std::filesystem::path& base_folder) {
  std::vector<std::filesystem::path> files;
  for (const char* method : {"full", "lora"}) {
    if (const auto own = own_defaults(base_folder, method); is_file(own)) files.push_back(own);
  }
  return files;
}

std::filesystem::path find_family_defaults(const std::string& family, const std::string& method) {
  return find_shared_file("configs/" + method + (family.empty() ? "" : "_" + family) + ".yaml");
}

}  // namespace sdtune::train
