#include "model/core/cuda_library.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "model/core/gpu_choice.h"
#include "model/core/libtorch_version.h"

namespace sdtune::model {

namespace {

constexpr const char* kKernelLibrary = "libsdtune_cuda.so";

// What loading left, or why it failed.
struct LoadedCuda {
  void* library = nullptr;
  const CudaTable* table = nullptr;
  std::string fault;
};

// The folder of the file that holds this address.
std::filesystem::path folder_of(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  // For the program itself the loader only knows the word it was called by.
  const std::filesystem::path file = info.dli_fname;
  if (!file.has_parent_path()) return std::filesystem::read_symlink("/proc/self/exe").parent_path();
  // The loader keeps ".." of a run path, which parent_path() would take for a name.
  return std::filesystem::absolute(file).lexically_normal().parent_path();
}

std::filesystem::path torch_folder() {
  return folder_of(reinterpret_cast<const void*>(&at::globalContext));
}

// Our library: where SDTUNE_CUDA_LIBRARY says, beside the program or module, in a build folder's lib, or in the Python
// environment that holds LibTorch: in the package sdtune (from a wheel) or in the environment's lib (from an install).
std::filesystem::path kernel_library() {
  if (const char* given = std::getenv("SDTUNE_CUDA_LIBRARY"); given != nullptr && *given != '\0') return given;
  const std::filesystem::path here = folder_of(reinterpret_cast<const void*>(&load_cuda));
  const std::filesystem::path packages = torch_folder().parent_path().parent_path();
  for (const std::filesystem::path& folder :
       {here, here.parent_path() / "lib", here.parent_path().parent_path() / "lib", packages / "sdtune" / "lib",
        packages.parent_path().parent_path()}) {
    if (std::filesystem::exists(folder / kKernelLibrary)) return folder / kKernelLibrary;
  }
  return {};
}

std::string last_loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown reason" : text;
}

// " (torch 2.11.0+cu128 is installed, ...)": our version built for another CUDA, or none, fits all but the kernels.
std::string installed_build() {
  const std::string found = loaded_libtorch(), cuda = cuda_version_text(cuda_build().cuda);
  std::string tag = "+cu" + cuda;
  std::erase(tag, '.');
  if (found.empty() || found.ends_with(tag)) return "";
  return " (torch " + found + " is installed, and its build for CUDA " + cuda + " is needed)";
}

// What is known without loading must be what is loaded.
bool has_built_architectures(const CudaTable& table) {
  std::vector<int> architectures;
  for (const std::int32_t* at = table.architectures; *at != 0; ++at) architectures.push_back(*at);
  return architectures == cuda_build().architectures && table.ptx == cuda_build().ptx;
}

LoadedCuda load_libraries() {
  LoadedCuda loaded;
  loaded.fault = missing_kernels();
  if (!loaded.fault.empty()) return loaded;
  const std::filesystem::path kernels = kernel_library();
  const std::filesystem::path torch_cuda = torch_folder() / "libtorch_cuda.so";
  if (dlopen(torch_cuda.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    loaded.fault = "LibTorch's CUDA part does not load: " + last_loader_error() + installed_build();
    return loaded;
  }
  loaded.library = dlopen(kernels.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get_table = loaded.library == nullptr
                             ? nullptr
                             : reinterpret_cast<const CudaTable* (*)()>(dlsym(loaded.library, kCudaTableSymbol));
  if (get_table == nullptr) {
    loaded.fault = "our CUDA kernels do not load: " + last_loader_error() + installed_build();
    return loaded;
  }
  loaded.table = get_table();
  if (loaded.table->version != kCudaTableVersion) {
    loaded.fault = kernels.string() + " is of another version of sdtune: build both together";
  } else if (!has_built_architectures(*loaded.table)) {
    loaded.fault = kernels.string() + " is built for other GPU architectures than this program: build both together";
  }
  return loaded;
}

const LoadedCuda& loaded_cuda() {
  static const LoadedCuda loaded = load_libraries();
  return loaded;
}

}  // namespace

std::string missing_kernels() {
  if (const std::filesystem::path kernels = kernel_library(); std::filesystem::exists(kernels)) return "";
  return "our CUDA kernels are missing (libsdtune_cuda.so beside the program, or where SDTUNE_CUDA_LIBRARY says): "
         "install "
         "sdtune again";
}

const std::string& load_cuda() {
  return loaded_cuda().fault;
}

void load_cuda_where_usable() {
  if (choose_gpu(cuda_driver(), cuda_build()).index) load_cuda();
}

const CudaTable& cuda_table() {
  const LoadedCuda& loaded = loaded_cuda();
  TORCH_CHECK(loaded.table != nullptr, "cuda_table: ", loaded.fault);
  return *loaded.table;
}

void* cuda_symbol(const char* name) {
  const LoadedCuda& loaded = loaded_cuda();
  void* symbol = loaded.library == nullptr ? nullptr : dlsym(loaded.library, name);
  TORCH_CHECK(symbol != nullptr, "cuda_symbol: ", kKernelLibrary, " has no ", name, " ", loaded.fault);
  return symbol;
}

CudaStream current_cuda_stream(torch::Device device) {
  const c10::impl::VirtualGuardImpl cuda(torch::kCUDA);
  const auto index = device.has_index() ? device.index() : cuda.getDevice().index();
  return {cuda.getStream(torch::Device(torch::kCUDA, index)).native_handle(), index};
}

}  // namespace sdtune::model
