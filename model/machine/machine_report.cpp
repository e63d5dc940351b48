#include "model/machine/machine_report.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>

#include "model/base/error.h"
#include "model/core/cuda_library.h"
#include "model/core/gpu_choice.h"
#include "model/machine/folder_check.h"
#include "model/machine/gpu_checks.h"
#include "model/machine/hardware_checks.h"
#include "model/machine/system_checks.h"
#include "model/machine/verbs_check.h"

namespace sdtune::model {

namespace {

// NCCL counts as 10000 * major + 100 * minor + patch.
std::string nccl_version() {
  const auto get = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  int version = 0;
  if (get == nullptr || get(&version) != 0) return "";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

void choose_device(MachineReport& report) {
  const GpuChoice choice = choose_gpu(report.driver, report.build);
  report.warning = choice.warning;
  report.fault = choice.fault;
  if (choice.index) {
    report.device = "cuda:" + std::to_string(*choice.index);
  } else if (choice.fault.empty()) {
    report.device = "cpu";
    report.fault = fault_of_driver(report.driver, report.build);
  }
}

// Keeps what LibTorch warns of instead of printing it.
class KeptWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { text_ += (text_.empty() ? "" : "; ") + warning.msg(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// What is known once the libraries are loaded.
void look_at_libraries(MachineReport& report) {
  if (!report.build.with_kernels) return;
  report.libraries_fault = load_cuda();
  if (!report.libraries_fault.empty()) {
    if (report.device.starts_with("cuda")) report.fault = report.libraries_fault;
    if (report.device.starts_with("cuda")) report.device.clear();
    return;
  }
  report.nccl = nccl_version();
  KeptWarnings warnings;
  const c10::WarningUtils::WarningHandlerGuard keep(&warnings);
  report.libtorch_gpus = at::detail::getCUDAHooks().deviceCount();
  if (report.device.starts_with("cuda") && *report.libtorch_gpus == 0) {
    report.fault = "the NVIDIA driver lists a GPU, and LibTorch finds none";
    if (!warnings.text().empty()) report.fault += ": " + warnings.text();
    report.device.clear();
  }
}

MachineCheck formats_check(const ProcessorKind& kind) {
  try {
    return check_formats(kind, find_processor(kind));
  } catch (const ConfigError& error) {
    return {"formats", CheckStatus::kFail, error.what(), "mend or remove the table of processors"};
  }
}

void add_checks(MachineReport& report, const std::filesystem::path& run_folder) {
  const SystemFiles files = system_files();
  const ProcessFacts facts = process_facts();
  report.checks = {check_cpu(files, facts),
                   check_memory(files),
                   formats_check(processor_kind(files)),
                   check_run_folder(folder_facts(run_folder)),
                   check_shared_memory(facts, static_cast<std::int64_t>(report.gpus.size())),
                   check_open_files(facts),
                   check_verbs(files, facts),
                   check_clock(facts),
                   check_versions(files, facts, SDTUNE_VERSION, report.libtorch)};
  const std::vector<MachineCheck> gpus = gpu_checks(report);
  report.checks.insert(report.checks.end(), gpus.begin(), gpus.end());
}

}  // namespace

bool MachineReport::has_failed() const {
  return std::any_of(checks.begin(), checks.end(),
                     [](const MachineCheck& check) { return check.status == CheckStatus::kFail; });
}

MachineReport report_machine(const std::filesystem::path& run_folder) {
  MachineReport report;
  report.driver = cuda_driver();
  report.build = cuda_build();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  report.visible_devices = visible == nullptr ? "" : visible;
  for (std::size_t index = 0; index < report.driver.devices.size(); ++index) {
    report.gpus.push_back({report.driver.devices[index], fault_of_gpu(report.driver, report.build, index)});
  }
  report.libtorch = TORCH_VERSION;
  choose_device(report);
  look_at_libraries(report);
  add_checks(report, run_folder);
  return report;
}

}  // namespace sdtune::model
