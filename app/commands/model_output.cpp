#include "app/commands/model_output.h"

#include <system_error>

#include "model/base/error.h"

namespace sdtune::app {

namespace fs = std::filesystem;

bool names_single_file(const fs::path& path) {
  return path.extension() == ".safetensors";
}

void check_model_output(const fs::path& output, bool overwrite) {
  std::error_code status;
  if (!fs::exists(output, status)) return;
  if (!overwrite) throw ConfigError("--output", "exists (got " + output.string() + ")", "--overwrite replaces it");
  const fs::path main = names_single_file(output) ? output : output / "model_index.json";
  if (!fs::is_regular_file(main, status)) {
    throw ConfigError("--output", "is not a model, so --overwrite does not replace it (got " + output.string() + ")");
  }
}

}  // namespace sdtune::app
