#include "app/commands/written_paths.h"

#include <filesystem>

#include "model/options/field.h"
#include "train/preflight/preflight_checks.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

void check_folder_of(const std::string& option, const fs::path& folder, std::vector<Problem>& problems) {
  std::vector<Problem> found;
  train::check_writable(option, folder, found);
  for (const Problem& problem : found) problems.push_back({flag_name(option), problem.what, problem.hint});
}

}  // namespace

void check_output_folder(const std::string& output, std::vector<Problem>& problems) {
  if (output.empty()) return problems.push_back({"--output", "is empty", "name a folder"});
  check_folder_of("output", output, problems);
}

void check_output_file(const std::string& option, const std::string& path, std::vector<Problem>& problems) {
  const fs::path file = path;
  if (file.has_parent_path()) check_folder_of(option, file.parent_path(), problems);
}

void check_image_file(const std::string& option, const std::string& path, std::vector<Problem>& problems) {
  if (path.empty()) return;
  const fs::path file = path;
  if (file.extension() != ".png") {
    problems.push_back({flag_name(option), "does not end with .png (got " + path + ")", ""});
  }
  check_output_file(option, path, problems);
}

}  // namespace sdtune::app
