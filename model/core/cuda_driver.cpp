#include "model/core/cuda_driver.h"

#include <dlfcn.h>

#include <cstddef>

namespace sdtune::model {

namespace {

constexpr int kNeededCuda = 13000;     // LibTorch's wheel is built for CUDA 13.0
constexpr int kNeededCapability = 75;  // the oldest architecture in it
constexpr int kCapabilityMajor = 75;   // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kCapabilityMinor = 76;   // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
constexpr const char* kDriverLibrary = "libcuda.so.1";

// A function of the driver's library, or nullptr.
template <typename Function>
Function* driver_function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

CudaDeviceInfo ask_device(void* library, int index) {
  CudaDeviceInfo info;
  int device = 0;
  char name[256] = "";
  std::size_t bytes = 0;
  int major = 0;
  int minor = 0;
  const auto get = driver_function<int(int*, int)>(library, "cuDeviceGet");
  const auto get_name = driver_function<int(char*, int, int)>(library, "cuDeviceGetName");
  const auto get_memory = driver_function<int(std::size_t*, int)>(library, "cuDeviceTotalMem_v2");
  const auto get_attribute = driver_function<int(int*, int, int)>(library, "cuDeviceGetAttribute");
  if (get == nullptr || get(&device, index) != 0) return info;
  if (get_name != nullptr && get_name(name, sizeof(name), device) == 0) info.name = name;
  if (get_memory != nullptr && get_memory(&bytes, device) == 0) info.memory_bytes = bytes;
  if (get_attribute != nullptr && get_attribute(&major, kCapabilityMajor, device) == 0 &&
      get_attribute(&minor, kCapabilityMinor, device) == 0) {
    info.capability = major * 10 + minor;
  }
  return info;
}

CudaDriver ask_driver() {
  CudaDriver driver;
  void* library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    driver.fault = "no NVIDIA driver was found (libcuda.so.1 is not there)";
    return driver;
  }
  const auto init = driver_function<int(unsigned)>(library, "cuInit");
  const auto get_version = driver_function<int(int*)>(library, "cuDriverGetVersion");
  const auto get_count = driver_function<int(int*)>(library, "cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || get_count == nullptr) {
    driver.fault = "libcuda.so.1 is not NVIDIA's driver";
    return driver;
  }
  get_version(&driver.version);
  int count = 0;
  const int status = init(0);
  if (status != 0 || get_count(&count) != 0 || count == 0) {
    driver.fault = "the NVIDIA driver finds no GPU (cuInit gave " + std::to_string(status) + ")";
    return driver;
  }
  for (int index = 0; index < count; ++index) driver.devices.push_back(ask_device(library, index));
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = ask_driver();
  return driver;
}

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

std::string why_unusable(const CudaDriver& driver) {
  if (!driver.fault.empty()) return driver.fault;
  if (driver.version < kNeededCuda) {
    return "the NVIDIA driver supports CUDA " + cuda_version_text(driver.version) + ", and CUDA " +
           cuda_version_text(kNeededCuda) + " (driver 580 or newer) is needed";
  }
  return "";
}

std::string why_unusable(const CudaDeviceInfo& device, const std::int32_t* architectures, std::int32_t ptx) {
  const std::string found = device.name + " has compute capability " + capability_text(device.capability);
  if (device.capability < kNeededCapability) {
    return found + ", and " + capability_text(kNeededCapability) + " or newer is needed";
  }
  std::string built;
  for (; *architectures != 0; ++architectures) {
    // Machine code runs on its own major version, from its own minor version on.
    if (*architectures / 10 == device.capability / 10 && *architectures <= device.capability) return "";
    built += (built.empty() ? "" : ", ") + capability_text(*architectures);
  }
  if (ptx != 0 && ptx <= device.capability) return "";
  return found + ", and this build has kernels for " + built +
         " only: build with -DSDTUNE_CUDA_ARCHITECTURES=" + std::to_string(device.capability) + " or =release";
}

}  // namespace sdtune::model
