#include "model/core/libtorch_version.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

// The folder of the package torch, in whose lib LibTorch lies; empty where the loader does not tell.
std::filesystem::path torch_package() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).lexically_normal().parent_path().parent_path();
}

std::string version_of_package(const std::filesystem::path& package) {
  if (package.empty()) return "";
  const std::string key = "__version__ = '";
  std::ifstream file(package / "version.py");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(key.size(), line.find('\'', key.size()) - key.size());
  }
  return "";
}

}  // namespace

std::string loaded_libtorch() {
  return version_of_package(torch_package());
}

void check_loaded_libtorch() {
  const std::filesystem::path package = torch_package();
  const std::string found = version_of_package(package);
  if (found.empty() || found.substr(0, found.find('+')) == TORCH_VERSION) return;
  throw ConfigError(package.string(), "is torch " + found + "; sdtune was built with LibTorch " TORCH_VERSION,
                    "pip install torch==" TORCH_VERSION);
}

}  // namespace sdtune::model
