// sdtune.plan: what a run would take.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "model/files/install_paths.h"
#include "python/src/forked_process.h"
#include "python/src/json_convert.h"
#include "python/src/module.h"
#include "train/plan/plan_json.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

Json plan(train::TrainConfig config, const std::optional<std::int64_t>& photos,
          const std::optional<std::filesystem::path>& gpus, bool savings, std::int64_t ranks) {
  if (ranks < 1)
    throw ConfigError("ranks", "is a number of processes (got " + std::to_string(ranks) + "; allowed: 1 <= x)");
  const train::GpuTable table = train::read_gpu_table(gpus.value_or(find_shared_file("configs/gpus.yaml")));
  const train::RunPlan found = train::plan_run({std::move(config), "", photos, savings, ranks});
  return train::plan_json(found, train::price_run(found, table), table.currency, {});
}

constexpr const char* kPlanDoc =
    "What training as `config` says would take, as the dict that `sdtune plan --json` prints (docs/plan.md): bytes of "
    "memory by phase and part, floating-point operations, steps, and hours and price on the GPUs of a table. Reads the "
    "base's configs and the photos' folder, no weights. photos: how many, where their folder is not here yet; gpus: a "
    "YAML file instead of configs/gpus.yaml; savings: also estimate memory-saving options; ranks: how many train "
    "together, where memory is that of one of them. Raises ConfigError, "
    "WeightError, DataError.";

}  // namespace

void register_plan(py::module_& module) {
  module.def(
      "plan",
      [](const train::TrainConfig& given, const std::optional<std::int64_t>& photos,
         const std::optional<std::filesystem::path>& gpus, bool savings, std::int64_t ranks) {
        train::TrainConfig config = given;  // another thread may change the caller's while the lock is released
        Json found;
        require_unforked_process();
        {
          const py::gil_scoped_release unlocked;
          found = plan(std::move(config), photos, gpus, savings, ranks);
        }
        return object_of(found);
      },
      py::arg("config"), py::kw_only(), py::arg("photos") = py::none(), py::arg("gpus") = py::none(),
      py::arg("savings") = true, py::arg("ranks") = 1, kPlanDoc);
}

}  // namespace sdtune::python
