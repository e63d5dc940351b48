// What a push uploads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sdtune::app {

// A file of the upload: on disk, or a text that is made for it.
struct PushFile {
  std::string path;              // in the repository
  std::filesystem::path source;  // empty: `text`
  std::string text;
  std::uint64_t size = 0;
};

// The model or LoRA of a run folder (its model/), or the folder itself where it is one. Throws WeightError where there
// is neither.
std::filesystem::path find_pushed_model(const std::filesystem::path& run);

// Every file of the model's folder, hidden ones left out. sdtune.json names the base of a LoRA without the folders of
// this machine. Throws WeightError for a link that leads out of the folder.
std::vector<PushFile> push_files(const std::filesystem::path& model);

// The newest samples/step-*/grid.png of the run: generated images alone, never photos; empty where there is none.
std::filesystem::path find_sheet(const std::filesystem::path& run);

}  // namespace sdtune::app
