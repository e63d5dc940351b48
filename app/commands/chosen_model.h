// Which model `sample` generates with.
#pragma once

#include <filesystem>
#include <string>

namespace sdtune::app {

struct ChosenModel {
  std::filesystem::path folder;  // of diffusers' layout, or of a LoRA training
  std::string reason;            // "as --model says", "newest finished run under runs/", "bundled base"
};

// `model` as given: a diffusers folder, the folder of a LoRA, a run folder (its model/ is taken), or a hub id. Empty:
// the newest run under `runs` whose model/ is complete, else the bundled base. Throws ConfigError when there is none
// of them.
ChosenModel choose_model(const std::string& model, const std::filesystem::path& runs);

}  // namespace sdtune::app
