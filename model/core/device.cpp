#include "model/core/device.h"

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/cpu/Utils.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/base/error.h"
#include "model/core/cuda_library.h"
#include "model/core/gpu_choice.h"
#include "model/core/kernel_access.h"

namespace sdtune::model {

namespace {

constexpr const char* kCpuHint = "--device cpu goes on without a GPU";
// Ranks that their launcher shows one GPU each all know theirs by the same number.
constexpr const char* kOnlyGpuHint =
    "--device cuda:0 is the only one, also where each rank sees a GPU of its own alone (srun --gpus-per-task)";

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

torch::Device find_device(const std::string& text, const std::string& where) {
  uses_our_kernels();  // a wrong word is refused before anything is loaded
  const CudaDriver& driver = cuda_driver();
  if (text == "cpu") return torch::Device(torch::kCPU);
  if (text == "auto") {
    const GpuChoice choice = choose_gpu(driver, cuda_build());
    const std::string fault = choice.index ? missing_kernels() : choice.fault;
    if (!fault.empty()) throw ConfigError(where, fault + " (got auto)", kCpuHint);
    if (!choice.index) return torch::Device(torch::kCPU);
    return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(*choice.index));
  }
  const std::optional<int> index = gpu_index(text);
  if (!index) throw ConfigError(where, "is unknown (got " + text + "; allowed: auto, cpu, cuda, cuda:N)");
  std::string fault = fault_of_gpu(driver, cuda_build(), static_cast<std::size_t>(*index));
  if (fault.empty()) fault = missing_kernels();
  const bool has_other = *index > 0 && fault_of_gpu(driver, cuda_build(), 0).empty() && driver.devices.size() == 1;
  if (!fault.empty()) throw ConfigError(where, fault + " (got " + text + ")", has_other ? kOnlyGpuHint : kCpuHint);
  return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(*index));
}

torch::Device parse_device(const std::string& text, const std::string& where) {
  const torch::Device device = find_device(text, where);
  if (device.is_cpu()) {
    load_cuda_where_usable();
    return device;
  }
  if (!load_cuda().empty()) throw ConfigError(where, load_cuda() + " (got " + text + ")", kCpuHint);
  // Of this thread; LibTorch's own threads set theirs.
  c10::impl::VirtualGuardImpl(torch::kCUDA).setDevice(device);
  return device;
}

std::string device_warning(const std::string& text) {
  return text == "auto" ? choose_gpu(cuda_driver(), cuda_build()).warning : "";
}

bool has_usable_gpu() {
  return choose_gpu(cuda_driver(), cuda_build()).index.has_value();
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

torch::Dtype default_dtype(torch::Device device) {
  if (device.is_cuda()) {
    const CudaDeviceInfo& info = cuda_driver().devices.at(static_cast<std::size_t>(device.index()));
    return computes_bfloat16(info) ? torch::kBFloat16 : torch::kFloat16;
  }
  return torch::kFloat32;
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
         cuda_version_text(driver.version) + ")";
}

}  // namespace sdtune::model
