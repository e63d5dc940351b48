#include "model/machine/machine_text.h"

#include <fmt/format.h>

#include "model/core/gpu_choice.h"

namespace sdtune::model {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json gpus_json(const MachineReport& report) {
  Json gpus = Json::array();
  for (std::size_t index = 0; index < report.gpus.size(); ++index) {
    const GpuReport& gpu = report.gpus[index];
    gpus.push_back({{"index", index},
                    {"name", gpu.info.name},
                    {"compute_capability", capability_text(gpu.info.capability)},
                    {"memory_bytes", gpu.info.memory_bytes},
                    {"fault", text_or_null(gpu.fault)}});
  }
  return gpus;
}

Json kernels_json(const MachineReport& report) {
  Json architectures = Json::array();
  for (const int architecture : report.build.architectures) architectures.push_back(capability_text(architecture));
  return {{"built", report.build.with_kernels},
          {"architectures", architectures},
          {"ptx", report.build.ptx == 0 ? Json() : Json(capability_text(report.build.ptx))},
          {"fault", text_or_null(report.libraries_fault)}};
}

Json checks_json(const MachineReport& report) {
  Json checks = Json::array();
  for (const MachineCheck& check : report.checks) {
    checks.push_back({{"name", check.name},
                      {"status", status_name(check.status)},
                      {"found", check.found},
                      {"advice", text_or_null(check.advice)}});
  }
  return checks;
}

}  // namespace

std::string machine_text(const MachineReport& report) {
  std::string text;
  for (const MachineCheck& check : report.checks) {
    text += fmt::format("{:<4}  {:<8}  {}\n", status_name(check.status), check.name, check.found);
    if (!check.advice.empty()) text += fmt::format("{:16}{}\n", "", check.advice);
  }
  return text;
}

Json machine_json(const MachineReport& report) {
  const CudaDriver& driver = report.driver;
  return {
      {"device", text_or_null(report.device)},
      {"fault", text_or_null(report.fault)},
      {"warning", text_or_null(report.warning)},
      {"gpus", gpus_json(report)},
      {"hardware", driver.hardware},
      {"container", driver.in_container},
      {"visible_devices", text_or_null(report.visible_devices)},
      {"driver",
       {{"found", driver.found},
        {"release", text_or_null(driver.release)},
        {"cuda", driver.found ? Json(cuda_version_text(driver.version)) : Json()},
        {"needed", text_or_null(needed_driver(report.build.cuda))}}},
      {"libtorch",
       {{"version", report.libtorch},
        {"cuda", report.build.cuda == 0 ? Json() : Json(cuda_version_text(report.build.cuda))},
        {"gpus", report.libtorch_gpus ? Json(*report.libtorch_gpus) : Json()}}},
      {"kernels", kernels_json(report)},
      {"nccl", text_or_null(report.nccl)},
      {"checks", checks_json(report)},
  };
}

}  // namespace sdtune::model
