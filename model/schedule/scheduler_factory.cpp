// Class name -> scheduler. A new scheduler is one line here.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/base/nearest_name.h"
#include "model/schedule/ddim.h"
#include "model/schedule/ddpm.h"
#include "model/schedule/deis_multistep.h"
#include "model/schedule/dpm_solver_multistep.h"
#include "model/schedule/dpm_solver_sde.h"
#include "model/schedule/euler_ancestral_discrete.h"
#include "model/schedule/euler_discrete.h"
#include "model/schedule/heun_discrete.h"
#include "model/schedule/lcm.h"
#include "model/schedule/lms_discrete.h"
#include "model/schedule/pndm.h"
#include "model/schedule/scheduler.h"
#include "model/schedule/unipc_multistep.h"

namespace sdtune::model {
namespace {

struct SchedulerClass {
  const char* name;
  ConfigKeys (*keys)();
  std::unique_ptr<Scheduler> (*make)(const Json& resolved);
};

template <class T>
SchedulerClass scheduler_class() {
  return {T::kClassName, &T::keys,
          [](const Json& resolved) -> std::unique_ptr<Scheduler> { return std::make_unique<T>(resolved); }};
}

const std::array kClasses = {
    scheduler_class<DdpmScheduler>(),
    scheduler_class<DdimScheduler>(),
    scheduler_class<PndmScheduler>(),
    scheduler_class<EulerDiscreteScheduler>(),
    scheduler_class<EulerAncestralDiscreteScheduler>(),
    scheduler_class<HeunDiscreteScheduler>(),
    scheduler_class<LmsDiscreteScheduler>(),
    scheduler_class<DpmSolverMultistepScheduler>(),
    scheduler_class<DpmSolverSdeScheduler>(),
    scheduler_class<UniPcMultistepScheduler>(),
    scheduler_class<DeisMultistepScheduler>(),
    scheduler_class<LcmScheduler>(),
};

}  // namespace

const std::vector<std::string>& scheduler_class_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const SchedulerClass& entry : kClasses) out.emplace_back(entry.name);
    return out;
  }();
  return names;
}

std::unique_ptr<Scheduler> make_scheduler(const std::string& class_name, const Json& config, const std::string& where) {
  const auto found = std::find_if(kClasses.begin(), kClasses.end(),
                                  [&](const SchedulerClass& entry) { return entry.name == class_name; });
  if (found == kClasses.end()) {
    const std::string allowed = fmt::format("{}", fmt::join(scheduler_class_names(), ", "));
    const std::string nearest = nearest_name(class_name, scheduler_class_names());
    throw WeightError(where, "unknown scheduler (got " + class_name + "; allowed: " + allowed + ")",
                      nearest.empty() ? "" : "did you mean " + nearest + "?");
  }
  return found->make(resolve_config(class_name, found->keys(), config, where));
}

}  // namespace sdtune::model
