#include "app/commands/model_output.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::app {

namespace fs = std::filesystem;

void require_model_and_output(const std::string& model, const std::string& output, std::vector<Problem>& problems) {
  if (model.empty()) problems.push_back({"--model", "is not given", "a diffusers folder or a file"});
  if (output.empty()) problems.push_back({"--output", "is not given", "a .safetensors file or a folder"});
}

bool names_single_file(const fs::path& path) {
  return path.extension() == ".safetensors";
}

bool names_other_file(const fs::path& path) {
  constexpr std::array<std::string_view, 7> kOthers = {".ckpt", ".pt", ".pth", ".bin", ".gguf", ".onnx", ".sft"};
  std::error_code status;
  return std::find(kOthers.begin(), kOthers.end(), path.extension().string()) != kOthers.end() &&
         !fs::is_directory(path, status);
}

void check_model_output(const fs::path& output, bool overwrite) {
  if (const std::optional<Problem> problem = tilde_problem("--output", output))
    throw ConfigError(std::vector{*problem});
  std::error_code status;
  if (!fs::exists(output, status)) return;
  if (!overwrite) throw ConfigError("--output", "exists (got " + output.string() + ")", "--overwrite replaces it");
  const fs::path main = names_single_file(output) ? output : output / "model_index.json";
  if (!is_file(main)) {
    throw ConfigError("--output", "is not a model, so --overwrite does not replace it (got " + output.string() + ")");
  }
}

}  // namespace sdtune::app
