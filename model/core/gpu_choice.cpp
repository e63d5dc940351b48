#include "model/core/gpu_choice.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace sdtune::model {

namespace {

constexpr int kNeededCapability = 75;  // the oldest architecture in LibTorch's wheels for CUDA 13
constexpr int kNoDevice = 100;         // CUDA_ERROR_NO_DEVICE
constexpr int kStubLibrary = 34;       // CUDA_ERROR_STUB_LIBRARY: the toolkit's library for linking, no driver

constexpr const char* kNoKernels = "this sdtune was built without CUDA kernels: build it with SDTUNE_CUDA=ON";

std::string cuda_text(const CudaBuild& build) {
  return "CUDA " + cuda_version_text(build.cuda) + " (driver " + needed_driver(build.cuda) + " or newer)";
}

// "an NVIDIA GPU (PCI 10de:2684)".
std::string hardware_text(const CudaDriver& driver) {
  const std::string list = fmt::format("{}", fmt::join(driver.hardware, ", "));
  return (driver.hardware.size() == 1 ? "an NVIDIA GPU (PCI " : "NVIDIA GPUs (PCI ") + list + ")";
}

std::string without_library(const CudaDriver& driver, const CudaBuild& build) {
  const bool host_has_driver = !driver.release.empty();
  if (driver.hardware.empty() && !host_has_driver) return "no NVIDIA driver was found (libcuda.so.1 is not there)";
  const std::string shown =
      driver.hardware.empty() ? "an NVIDIA driver (" + driver.release + ")" : hardware_text(driver);
  if (driver.in_container || host_has_driver) {
    return "this machine has " + shown +
           ", but libcuda.so.1 is missing here: start the container with the NVIDIA runtime (docker run --gpus all, "
           "podman run --device nvidia.com/gpu=all, in Kubernetes resources.limits of nvidia.com/gpu)";
  }
  return "this machine has " + shown +
         ", and no NVIDIA driver is installed (libcuda.so.1 is not there): install one for " + cuda_text(build);
}

std::string without_device(const CudaDriver& driver) {
  if (driver.hidden) return "CUDA_VISIBLE_DEVICES hides every GPU";
  std::string text = "the NVIDIA driver finds no GPU";
  if (driver.status != 0) {
    text += " (cuInit gave " + std::to_string(driver.status) +
            (driver.status_text.empty() ? "" : ", " + driver.status_text) + ")";
  }
  if (!driver.hardware.empty()) text += ", though this machine has " + hardware_text(driver);
  // A number or UUID that is not there hides what follows it. nvidia-smi lists the GPUs all the same.
  const bool has_list = driver.status == kNoDevice && !driver.visible_devices.empty();
  if (has_list && (!driver.hardware.empty() || !driver.release.empty())) {
    return text + ": does CUDA_VISIBLE_DEVICES=" + driver.visible_devices + " begin with one of its GPUs?";
  }
  return driver.hardware.empty() ? text : text + ": does nvidia-smi list it?";
}

std::string fault_of_device(const CudaDeviceInfo& device, const CudaBuild& build) {
  const std::string found = device.name + " has compute capability " + capability_text(device.capability);
  if (device.capability < kNeededCapability) {
    return found + ", and LibTorch needs " + capability_text(kNeededCapability) + " or newer";
  }
  std::vector<std::string> names;
  for (const int architecture : build.architectures) {
    // Machine code runs on its own major version, from its own minor version on.
    if (architecture / 10 == device.capability / 10 && architecture <= device.capability) return "";
    names.push_back(capability_text(architecture));
  }
  const std::string built = fmt::format("{}", fmt::join(names, ", "));
  if (build.ptx != 0 && build.ptx <= device.capability) return "";
  return found + ", and this build has kernels for " + built +
         " only: build with -DSDTUNE_CUDA_ARCHITECTURES=" + std::to_string(device.capability) + " or =release";
}

// Whether there is a GPU at all, usable or not. A library without a device and without hardware (a toolkit's stub, an
// image made for GPU machines that runs elsewhere) is none.
bool has_gpu(const CudaDriver& driver) {
  if (!driver.devices.empty()) return true;
  if (driver.hidden) return false;
  const bool driver_failed =
      driver.found && driver.status != 0 && driver.status != kNoDevice && driver.status != kStubLibrary;
  return driver_failed || !driver.hardware.empty() || !driver.release.empty();
}

}  // namespace

std::string fault_of_driver(const CudaDriver& driver, const CudaBuild& build) {
  if (!driver.found) return without_library(driver, build);
  if (driver.devices.empty() && (driver.version >= build.cuda / 1000 * 1000 || driver.status == kNoDevice)) {
    return without_device(driver);
  }
  if (driver.version < build.cuda / 1000 * 1000) {
    const std::string release = driver.release.empty() ? "" : " " + driver.release;
    return "the NVIDIA driver" + release + " supports CUDA " + cuda_version_text(driver.version) + ", and " +
           cuda_text(build) + " is needed";
  }
  if (build.cuda == 0) return "this LibTorch is its build without CUDA";
  return build.with_kernels ? "" : kNoKernels;
}

std::string fault_of_gpu(const CudaDriver& driver, const CudaBuild& build, std::size_t index) {
  if (const std::string fault = fault_of_driver(driver, build); !fault.empty()) return fault;
  if (index >= driver.devices.size()) {
    return "there is no GPU " + std::to_string(index) + " (found " + std::to_string(driver.devices.size()) + ")";
  }
  return fault_of_device(driver.devices[index], build);
}

bool computes_bfloat16(const CudaDeviceInfo& gpu) {
  return gpu.capability >= 80;
}

GpuChoice choose_gpu(const CudaDriver& driver, const CudaBuild& build) {
  GpuChoice choice;
  if (!has_gpu(driver)) return choice;
  if (!build.with_kernels) {
    const std::string name = driver.devices.empty() ? hardware_text(driver) : driver.devices.front().name;
    choice.warning = "using the CPU, though this machine has " + name + ": " + kNoKernels;
    return choice;
  }
  for (std::size_t index = 0; index < std::max<std::size_t>(driver.devices.size(), 1); ++index) {
    const std::string fault = fault_of_gpu(driver, build, index);
    if (fault.empty()) return {index, "", ""};
    if (choice.fault.find(fault) == std::string::npos) choice.fault += (choice.fault.empty() ? "" : "; ") + fault;
  }
  return choice;
}

}  // namespace sdtune::model
