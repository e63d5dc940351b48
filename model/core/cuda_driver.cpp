#include "model/core/cuda_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

namespace sdtune::model {

namespace {

constexpr int kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
constexpr const char* kDriverLibrary = "libcuda.so.1";

// A function of the driver's library, or nullptr.
template <typename Function>
Function* driver_function(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
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

void ask_library(CudaDriver& driver) {
  void* library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto init = driver_function<int(unsigned)>(library, "cuInit");
  const auto get_version = driver_function<int(int*)>(library, "cuDriverGetVersion");
  const auto get_count = driver_function<int(int*)>(library, "cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || get_count == nullptr) return;
  driver.found = true;
  get_version(&driver.version);
  driver.status = init(0);
  const char* text = nullptr;
  const auto get_text = driver_function<int(int, const char**)>(library, "cuGetErrorString");
  if (driver.status != 0 && get_text != nullptr && get_text(driver.status, &text) == 0 && text != nullptr) {
    driver.status_text = text;
  }
  int count = 0;
  if (driver.status != 0 || get_count(&count) != 0) return;
  for (int index = 0; index < count; ++index) driver.devices.push_back(ask_device(library, index));
}

// The first line of a file under /sys or /proc, "" where there is none.
std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The word that is a release number, wherever it stands: NVIDIA's own module says "NVRM version: NVIDIA UNIX x86_64
// Kernel Module  580.82.07  Release Build ..", the open one ".. UNIX Open Kernel Module for x86_64  580.159.04 ..".
std::string kernel_module_release(const std::filesystem::path& root) {
  std::istringstream words(first_line(root / "proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return "";
}

// CUDA stops reading the list at the first entry that names no device.
bool hides_every_gpu(const char* visible_devices) {
  if (visible_devices == nullptr) return false;
  const std::string list = visible_devices;
  return list.empty() || list.front() == '-' || list == "NoDevFiles";
}

CudaDriver ask_driver() {
  const char* given = std::getenv("SDTUNE_SYSTEM_ROOT");
  const std::filesystem::path root = given == nullptr ? "/" : given;
  CudaDriver driver;
  ask_library(driver);
  driver.release = kernel_module_release(root);
  driver.hardware = find_nvidia_hardware(root);
  const char* visible_devices = std::getenv("CUDA_VISIBLE_DEVICES");
  driver.visible_devices = visible_devices == nullptr ? "" : visible_devices;
  driver.hidden = hides_every_gpu(visible_devices);
  std::error_code none;
  driver.in_container =
      std::filesystem::exists(root / ".dockerenv", none) || std::filesystem::exists(root / "run/.containerenv", none);
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = ask_driver();
  return driver;
}

std::vector<std::string> find_nvidia_hardware(const std::filesystem::path& root) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root / "sys/bus/pci/devices", error)) {
    const std::string vendor = first_line(entry.path() / "vendor");
    const std::string kind = first_line(entry.path() / "class");
    const std::string device = first_line(entry.path() / "device");
    // Class 03: VGA controller (0x0300) or 3D controller (0x0302).
    if (vendor == "0x10de" && kind.starts_with("0x03") && device.size() > 2)
      found.push_back("10de:" + device.substr(2));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

}  // namespace sdtune::model
