#include "model/machine/gpu_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/core/gpu_choice.h"

namespace sdtune::model {
namespace {

std::string architecture_list(const CudaBuild& build) {
  std::vector<std::string> names;
  for (const int architecture : build.architectures) names.push_back(capability_text(architecture));
  if (build.ptx != 0) names.push_back("PTX of " + capability_text(build.ptx));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string driver_line(const MachineReport& report) {
  const CudaDriver& driver = report.driver;
  const std::string needed = "needed: " + needed_driver(report.build.cuda) + " or newer";
  if (!driver.found) return "none (" + needed + ")";
  const std::string release = driver.release.empty() ? "" : driver.release + ", ";
  return fmt::format("{}for CUDA {} ({})", release, cuda_version_text(driver.version), needed);
}

// One that is too old is no "ok", though a line on the GPUs says so as well.
CheckStatus driver_status(const MachineReport& report) {
  const bool suffices = !report.driver.found || report.driver.version >= report.build.cuda / 1000 * 1000;
  return suffices ? CheckStatus::kOk : CheckStatus::kWarn;
}

std::string libtorch_line(const MachineReport& report) {
  std::string line = report.libtorch;
  line += report.build.cuda == 0 ? ", without CUDA" : " for CUDA " + cuda_version_text(report.build.cuda);
  if (report.libtorch_gpus) line += fmt::format(", finds {} GPU(s)", *report.libtorch_gpus);
  return line;
}

std::string kernels_line(const MachineReport& report) {
  if (!report.build.with_kernels) return "none in this build";
  const std::string line = "compute capability " + architecture_list(report.build);
  return report.libraries_fault.empty() ? line : line + "; " + report.libraries_fault;
}

void add_gpus(const MachineReport& report, std::vector<MachineCheck>& checks) {
  for (std::size_t index = 0; index < report.gpus.size(); ++index) {
    const GpuReport& gpu = report.gpus[index];
    const std::string found = fmt::format("cuda:{} {}, {}, compute capability {}", index, gpu.info.name,
                                          gibibytes_text(static_cast<std::int64_t>(gpu.info.memory_bytes)),
                                          capability_text(gpu.info.capability));
    const bool is_usable = gpu.fault.empty();
    checks.push_back({"gpu", is_usable ? CheckStatus::kOk : CheckStatus::kWarn,
                      found + ": " + (is_usable ? "usable" : gpu.fault), ""});
  }
  if (!report.gpus.empty()) return;
  std::string shown = "none listed by a driver";
  for (const std::string& id : report.driver.hardware) shown += "; NVIDIA hardware at PCI " + id;
  checks.push_back({"gpu", CheckStatus::kOk, shown, ""});
}

MachineCheck device_check(const MachineReport& report) {
  if (report.device.empty()) {
    return {"device", CheckStatus::kFail, "--device auto is refused: " + report.fault,
            "--device cpu goes on without a GPU"};
  }
  if (!report.warning.empty()) return {"device", CheckStatus::kWarn, report.device, report.warning};
  return {"device", CheckStatus::kOk, report.fault.empty() ? report.device : report.device + ": " + report.fault, ""};
}

}  // namespace

std::vector<MachineCheck> gpu_checks(const MachineReport& report) {
  std::vector<MachineCheck> checks;
  const auto add = [&](const char* name, const std::string& found) {
    checks.push_back({name, CheckStatus::kOk, found, ""});
  };
  add_gpus(report, checks);
  checks.push_back({"driver", driver_status(report), driver_line(report), ""});
  if (!report.visible_devices.empty()) add("visible", "CUDA_VISIBLE_DEVICES=" + report.visible_devices);
  add("libtorch", libtorch_line(report));
  add("kernels", kernels_line(report));
  add("nccl", report.nccl.empty() ? "not loaded" : report.nccl);
  checks.push_back(device_check(report));
  return checks;
}

}  // namespace sdtune::model
