#include "app/commands/chosen_model.h"

#include <optional>
#include <system_error>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"
#include "model/files/install_paths.h"
#include "model/lora/lora_file.h"
#include "model/lora/lora_model.h"
#include "train/config/run_folder.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

// The file that makes the folder a model or a LoRA; empty where there is none.
fs::path main_file(const fs::path& folder) {
  if (is_file(folder / "model_index.json")) return folder / "model_index.json";
  return model::is_lora_folder(folder) ? folder / model::kLoraFile : fs::path();
}

// Whether `train` wrote the folder: `pretrain` leaves a model/ too, a base that no photos were trained into.
bool is_of_train(const train::RunFolder& run) {
  return is_file(run.record()) || is_file(run.config());
}

// The model/ of the run that finished last, by the time of its main file.
std::optional<fs::path> newest_finished_run(const fs::path& runs) {
  std::optional<fs::path> newest;
  fs::file_time_type newest_time;
  std::error_code status;
  for (const fs::directory_entry& run : fs::directory_iterator(runs, status)) {
    const train::RunFolder folder{run.path()};
    const fs::path model = folder.model(), file = main_file(model);
    if (file.empty() || !is_of_train(folder)) continue;
    const fs::file_time_type time = fs::last_write_time(file, status);
    if (status || (newest && time <= newest_time)) continue;
    newest = model;
    newest_time = time;
  }
  return newest;
}

}  // namespace

ChosenModel choose_model(const std::string& model, const fs::path& runs) {
  if (!model.empty()) {
    const bool is_run = main_file(model).empty() && !main_file(fs::path(model) / "model").empty();
    if (is_run) return {fs::path(model) / "model", "as --model says"};
    const fs::path folder = find_model_folder(model);  // "model/" is "model": its name says what it is
    return {folder.has_filename() ? folder : folder.parent_path(), "as --model says"};
  }
  if (const std::optional<fs::path> run = newest_finished_run(runs)) {
    return {*run, "newest finished run under " + runs.string() + "/"};
  }
  const fs::path bundled = find_bundled_base();
  if (!bundled.empty()) return {bundled, "bundled base"};
  throw ConfigError("--model",
                    "is not given, and there is neither a finished run under " + runs.string() +
                        "/ nor a bundled base in this installation",
                    "give a diffusers folder: --model DIR");
}

}  // namespace sdtune::app
