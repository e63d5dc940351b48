#include "model/core/device.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/cpu/Utils.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/base/error.h"
#include "model/core/cuda_driver.h"
#include "model/core/kernel_access.h"

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
  return std::filesystem::absolute(file).parent_path();
}

std::filesystem::path torch_folder() {
  return folder_of(reinterpret_cast<const void*>(&at::globalContext));
}

// Our library: where SDTUNE_CUDA_LIBRARY says, beside the program or module, in a build folder's lib, or in the Python
// environment that holds LibTorch: in the package sdtune (from a wheel) or in the environment's lib (from an install).
std::filesystem::path kernel_library() {
  if (const char* given = std::getenv("SDTUNE_CUDA_LIBRARY"); given != nullptr && *given != '\0') return given;
  const std::filesystem::path here = folder_of(reinterpret_cast<const void*>(&why_no_cuda));
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

LoadedCuda load_libraries() {
  LoadedCuda loaded;
  const std::filesystem::path kernels = kernel_library();
  if (kernels.empty()) {
    loaded.fault = "this sdtune was built without CUDA kernels (no libsdtune_cuda.so): build with -DSDTUNE_CUDA=ON";
    return loaded;
  }
  const std::filesystem::path torch_cuda = torch_folder() / "libtorch_cuda.so";
  if (dlopen(torch_cuda.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    loaded.fault = "LibTorch's CUDA part does not load: " + last_loader_error();
    return loaded;
  }
  loaded.library = dlopen(kernels.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get_table = loaded.library == nullptr
                             ? nullptr
                             : reinterpret_cast<const CudaTable* (*)()>(dlsym(loaded.library, kCudaTableSymbol));
  if (get_table == nullptr) {
    loaded.fault = "our CUDA kernels do not load: " + last_loader_error();
    return loaded;
  }
  loaded.table = get_table();
  if (loaded.table->version != kCudaTableVersion) {
    loaded.fault = kernels.string() + " is of another version of sdtune: build both together";
  }
  return loaded;
}

const LoadedCuda& loaded_cuda() {
  static const LoadedCuda loaded = load_libraries();
  return loaded;
}

// Why this GPU cannot be used, after loading what it needs; "" when it can.
std::string fault_of_gpu(std::size_t index) {
  const CudaDriver& driver = cuda_driver();
  if (const std::string fault = why_unusable(driver); !fault.empty()) return fault;
  if (index >= driver.devices.size()) {
    return "there is no GPU " + std::to_string(index) + " (found " + std::to_string(driver.devices.size()) + ")";
  }
  const LoadedCuda& loaded = loaded_cuda();
  if (!loaded.fault.empty()) return loaded.fault;
  return why_unusable(driver.devices[index], loaded.table->architectures, loaded.table->ptx);
}

// The N of "cuda:N", 0 for "cuda", nothing for another word.
std::optional<int> gpu_index(const std::string& text) {
  if (text == "cuda") return 0;
  if (!text.starts_with("cuda:")) return std::nullopt;
  int index = -1;
  const char* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data() + 5, end, index);
  if (status != std::errc() || stop != end || index < 0 || index > 127) return std::nullopt;
  return index;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown CPU";
}

bool cpu_has(const char* feature) {
  static const std::unordered_map<std::string, c10::IValue> features = at::cpu::get_cpu_capabilities();
  const auto found = features.find(feature);
  return found != features.end() && found->second.isBool() && found->second.toBool();
}

std::string cpu_features() {
  if (cpu_has("amx_bf16")) return "AMX";
  if (cpu_has("avx512_bf16")) return "AVX512-BF16";
  if (cpu_has("avx512_f")) return "AVX512";
  return cpu_has("avx2") ? "AVX2" : "no AVX2";
}

}  // namespace

torch::Device parse_device(const std::string& text, const std::string& where) {
  uses_our_kernels();  // a wrong word is refused before anything is loaded
  if (text == "cpu") return torch::Device(torch::kCPU);
  if (text == "auto") {
    return fault_of_gpu(0).empty() ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
  }
  const std::optional<int> index = gpu_index(text);
  if (!index) throw ConfigError(where, "no such device (got " + text + "; allowed: auto, cpu, cuda, cuda:N)");
  const std::string fault = fault_of_gpu(static_cast<std::size_t>(*index));
  if (!fault.empty()) throw ConfigError(where, fault + " (got " + text + ")", "--device cpu works everywhere");
  return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(*index));
}

torch::Dtype parse_dtype(const std::string& text, const std::string& where) {
  if (text == "float32" || text == "no") return torch::kFloat32;
  if (text == "bfloat16" || text == "bf16") return torch::kBFloat16;
  if (text == "float16" || text == "fp16") return torch::kFloat16;
  throw ConfigError(where, "no such dtype (got " + text + "; allowed: float32, bfloat16, float16)");
}

std::string dtype_name(torch::Dtype dtype) {
  switch (dtype) {
    case torch::kFloat32:
      return "float32";
    case torch::kBFloat16:
      return "bfloat16";
    case torch::kFloat16:
      return "float16";
    default:
      return c10::toString(dtype);
  }
}

std::string why_no_cuda() {
  if (const std::string fault = why_unusable(cuda_driver()); !fault.empty()) return fault;
  if (kernel_library().empty()) return "this sdtune was built without CUDA kernels (no libsdtune_cuda.so)";
  return "";
}

torch::Dtype fast_dtype(torch::Device device) {
  if (device.is_cuda()) {
    const CudaDeviceInfo& info = cuda_driver().devices.at(static_cast<std::size_t>(device.index()));
    return info.capability >= 80 ? torch::kBFloat16 : torch::kFloat16;
  }
  return cpu_has("amx_bf16") ? torch::kBFloat16 : torch::kFloat32;
}

torch::MemoryFormat fast_memory_format(torch::Device device, torch::Dtype dtype) {
  // Tensor cores read NHWC. On CPUs NCHW measured faster for the convolutions of a UNet (82 against 67 images a
  // second).
  return device.is_cuda() && dtype != torch::kFloat32 ? torch::MemoryFormat::ChannelsLast
                                                      : torch::MemoryFormat::Contiguous;
}

std::string describe_device(torch::Device device) {
  if (device.is_cpu()) {
    return "cpu (" + cpu_name() + ", " + std::to_string(at::get_num_threads()) + " threads, " + cpu_features() + ")";
  }
  const CudaDriver& driver = cuda_driver();
  const CudaDeviceInfo& info = driver.devices.at(static_cast<std::size_t>(device.index()));
  const auto tenths = static_cast<long>(static_cast<double>(info.memory_bytes) / (1 << 30) * 10);
  return device.str() + " (" + info.name + ", " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
         " GiB, compute capability " + capability_text(info.capability) + ", driver for CUDA " +
         std::to_string(driver.version / 1000) + "." + std::to_string(driver.version % 1000 / 10) + ")";
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
