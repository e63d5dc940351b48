#include "app/commands/web_names.h"

#include <algorithm>
#include <vector>

#include "app/commands/sampler_names.h"

namespace sdtune::app {
namespace {

struct Solver {
  const char* name;        // ours
  const char* web;         // theirs
  const char* class_name;  // diffusers', where the solver is its usual one
};
constexpr Solver kSolvers[] = {
    {"ddim", "DDIM", "DDIMScheduler"},
    {"ddpm", "DDPM", "DDPMScheduler"},
    {"pndm", "PLMS", "PNDMScheduler"},
    {"euler", "Euler", "EulerDiscreteScheduler"},
    {"euler_a", "Euler a", "EulerAncestralDiscreteScheduler"},
    {"heun", "Heun", "HeunDiscreteScheduler"},
    {"lms", "LMS", "LMSDiscreteScheduler"},
    {"dpm++2m", "DPM++ 2M", "DPMSolverMultistepScheduler"},
    {"dpm++2m_sde", "DPM++ 2M SDE", ""},
    {"dpm++sde", "DPM++ SDE", "DPMSolverSDEScheduler"},
    {"unipc", "UniPC", "UniPCMultistepScheduler"},
    {"lcm", "LCM", "LCMScheduler"},
};

struct Schedule {
  const char* suffix;
  const char* web;
};
constexpr Schedule kSchedules[] = {
    {"_karras", "Karras"},
    {"_exponential", "Exponential"},
    {"_trailing", "SGM Uniform"},
    {"_ays", "Align Your Steps"},
};

}  // namespace

std::string web_sampler_text(const std::string& sampler) {
  for (const Solver& solver : kSolvers) {
    if (sampler == solver.name) return solver.web;
    for (const Schedule& schedule : kSchedules) {
      if (sampler == std::string(solver.name) + schedule.suffix) {
        return std::string(solver.web) + ", Schedule type: " + schedule.web;
      }
    }
  }
  return sampler;
}

std::string web_sampler_of_class(const std::string& class_name) {
  for (const Solver& solver : kSolvers) {
    if (class_name == solver.class_name) return solver.web;
  }
  return class_name;
}

std::optional<std::string> sampler_of_web(const std::string& sampler, const std::string& schedule) {
  const bool none = schedule.empty() || schedule == "Automatic";
  for (const Solver& solver : kSolvers) {
    std::string name;
    if (sampler == solver.web && none) name = solver.name;
    for (const Schedule& curve : kSchedules) {
      const bool behind = none && sampler == std::string(solver.web) + " " + curve.web;
      if (behind || (sampler == solver.web && schedule == curve.web)) name = std::string(solver.name) + curve.suffix;
    }
    const std::vector<std::string> known = sampler_names();
    if (!name.empty() && std::find(known.begin(), known.end(), name) != known.end()) return name;
  }
  return std::nullopt;
}

}  // namespace sdtune::app
