#include "app/machine/machine_text.h"

#include <fmt/format.h>

namespace sdtune::app {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

std::string architecture_list(const model::CudaBuild& build) {
  std::string list;
  for (const int architecture : build.architectures) {
    list += (list.empty() ? "" : ", ") + model::capability_text(architecture);
  }
  return list + (build.ptx == 0 ? "" : ", PTX of " + model::capability_text(build.ptx));
}

std::string driver_line(const model::MachineReport& report) {
  const model::CudaDriver& driver = report.driver;
  const std::string needed = "needed: " + model::needed_driver(report.build.cuda) + " or newer";
  if (!driver.found) return "none (" + needed + ")";
  const std::string release = driver.release.empty() ? "" : driver.release + ", ";
  return fmt::format("{}for CUDA {} ({})", release, model::cuda_version_text(driver.version), needed);
}

std::string libtorch_line(const model::MachineReport& report) {
  std::string line = report.libtorch;
  line += report.build.cuda == 0 ? ", without CUDA" : " for CUDA " + model::cuda_version_text(report.build.cuda);
  if (report.libtorch_gpus) line += fmt::format(", finds {} GPU(s)", *report.libtorch_gpus);
  return line;
}

std::string kernels_line(const model::MachineReport& report) {
  if (!report.build.with_kernels) return "none in this build";
  const std::string line = "compute capability " + architecture_list(report.build);
  return report.libraries_fault.empty() ? line : line + "; " + report.libraries_fault;
}

std::string verdict(const model::MachineReport& report) {
  if (report.device.empty())
    return "--device auto is refused: " + report.fault + "\n         --device cpu goes on without a GPU";
  if (!report.warning.empty()) return report.device + "; " + report.warning;
  return report.fault.empty() ? report.device : report.device + ": " + report.fault;
}

}  // namespace

std::string machine_text(const model::MachineReport& report) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<8} {}\n", name, value); };
  for (std::size_t index = 0; index < report.gpus.size(); ++index) {
    const model::GpuReport& gpu = report.gpus[index];
    line("gpu", fmt::format("cuda:{} {}, {:.1f} GiB, compute capability {}: {}", index, gpu.info.name,
                            static_cast<double>(gpu.info.memory_bytes) / kGiB,
                            model::capability_text(gpu.info.capability), gpu.fault.empty() ? "usable" : gpu.fault));
  }
  if (report.gpus.empty()) {
    std::string shown = "none listed by a driver";
    for (const std::string& id : report.driver.hardware) shown += "; NVIDIA hardware at PCI " + id;
    line("gpu", shown);
  }
  line("driver", driver_line(report));
  if (!report.visible_devices.empty()) line("visible", "CUDA_VISIBLE_DEVICES=" + report.visible_devices);
  line("libtorch", libtorch_line(report));
  line("kernels", kernels_line(report));
  line("nccl", report.nccl.empty() ? "not loaded" : report.nccl);
  line("device", verdict(report));
  return text;
}

Json machine_json(const model::MachineReport& report) {
  const model::CudaDriver& driver = report.driver;
  Json gpus = Json::array();
  for (std::size_t index = 0; index < report.gpus.size(); ++index) {
    const model::GpuReport& gpu = report.gpus[index];
    gpus.push_back({{"index", index},
                    {"name", gpu.info.name},
                    {"compute_capability", model::capability_text(gpu.info.capability)},
                    {"memory_bytes", gpu.info.memory_bytes},
                    {"fault", text_or_null(gpu.fault)}});
  }
  Json architectures = Json::array();
  for (const int architecture : report.build.architectures)
    architectures.push_back(model::capability_text(architecture));
  return {
      {"device", text_or_null(report.device)},
      {"fault", text_or_null(report.fault)},
      {"warning", text_or_null(report.warning)},
      {"gpus", gpus},
      {"hardware", driver.hardware},
      {"container", driver.in_container},
      {"visible_devices", text_or_null(report.visible_devices)},
      {"driver",
       {{"found", driver.found},
        {"release", text_or_null(driver.release)},
        {"cuda", driver.found ? Json(model::cuda_version_text(driver.version)) : Json()},
        {"needed", text_or_null(model::needed_driver(report.build.cuda))}}},
      {"libtorch",
       {{"version", report.libtorch},
        {"cuda", report.build.cuda == 0 ? Json() : Json(model::cuda_version_text(report.build.cuda))},
        {"gpus", report.libtorch_gpus ? Json(*report.libtorch_gpus) : Json()}}},
      {"kernels",
       {{"built", report.build.with_kernels},
        {"architectures", architectures},
        {"ptx", report.build.ptx == 0 ? Json() : Json(model::capability_text(report.build.ptx))},
        {"fault", text_or_null(report.libraries_fault)}}},
      {"nccl", text_or_null(report.nccl)},
  };
}

}  // namespace sdtune::app
