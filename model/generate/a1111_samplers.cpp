#include "model/generate/a1111_samplers.h"

#include <algorithm>
#include <vector>

#include "model/generate/sampler_names.h"

namespace sdtune::model {
namespace {

struct SolverName {
  const char* name;        // ours
  const char* a1111;       // theirs
  const char* class_name;  // diffusers', where the solver is its usual one
  // What "Automatic" means for it since A1111's version 1.9, and no schedule type at all there; older versions, which
  // write none, mean the plain one by that.
  const char* automatic = "";
};
constexpr SolverName kSolvers[] = {
    {"ddim", "DDIM", "DDIMScheduler"},
    {"ddpm", "DDPM", "DDPMScheduler"},
    {"pndm", "PLMS", "PNDMScheduler"},
    {"euler", "Euler", "EulerDiscreteScheduler"},
    {"euler_a", "Euler a", "EulerAncestralDiscreteScheduler"},
    {"heun", "Heun", "HeunDiscreteScheduler"},
    {"lms", "LMS", "LMSDiscreteScheduler"},
    {"dpm++2m", "DPM++ 2M", "DPMSolverMultistepScheduler", "_karras"},
    {"dpm++2m_sde", "DPM++ 2M SDE", "", "_exponential"},
    {"dpm++sde", "DPM++ SDE", "DPMSolverSDEScheduler", "_karras"},
    {"unipc", "UniPC", "UniPCMultistepScheduler"},
    {"deis", "DEIS", "DEISMultistepScheduler"},
    {"lcm", "LCM", "LCMScheduler"},
};

struct ScheduleName {
  const char* suffix;
  const char* a1111;
};
constexpr ScheduleName kSchedules[] = {
    {"_karras", "Karras"},
    {"_exponential", "Exponential"},
    {"_trailing", "SGM Uniform"},
    {"_ays", "Align Your Steps"},
};

constexpr const char* kPlain = "Uniform";

bool is_known(const std::string& sampler) {
  const std::vector<std::string> known = sampler_names();
  return std::find(known.begin(), known.end(), sampler) != known.end();
}

// The schedule behind a name that a scheduler's config stands for; a curve has timesteps of its own, whatever the
// spacing says.
std::string schedule_of(const Json& config) {
  if (config.value("use_karras_sigmas", Json()) == true) return "_karras";
  if (config.value("use_exponential_sigmas", Json()) == true) return "_exponential";
  return config.value("timestep_spacing", Json()) == "trailing" ? "_trailing" : "";
}

}  // namespace

std::string a1111_sampler_text(const std::string& sampler) {
  for (const SolverName& solver : kSolvers) {
    if (sampler == solver.name) {
      const bool is_plain = std::string(solver.automatic).empty();
      return std::string(solver.a1111) + (is_plain ? "" : std::string(", Schedule type: ") + kPlain);
    }
    for (const ScheduleName& schedule : kSchedules) {
      if (sampler == std::string(solver.name) + schedule.suffix) {
        return std::string(solver.a1111) + ", Schedule type: " + schedule.a1111;
      }
    }
  }
  return sampler;
}

std::string a1111_sampler_of_class(const std::string& class_name, const Json& config) {
  const bool is_sde = config.value("algorithm_type", Json()) == "sde-dpmsolver++";
  for (const SolverName& solver : kSolvers) {
    if (class_name != solver.class_name) continue;
    const std::string with_noise = std::string(solver.name) + "_sde";
    const std::string name = is_sde && is_known(with_noise) ? with_noise : solver.name;
    const std::string scheduled = name + schedule_of(config);
    return a1111_sampler_text(is_known(scheduled) ? scheduled : name);
  }
  return class_name;
}

std::optional<std::string> sampler_of_a1111(const std::string& sampler, const std::string& schedule) {
  const bool automatic = schedule == "Automatic", none = schedule.empty() || schedule == kPlain || automatic;
  for (const SolverName& solver : kSolvers) {
    std::string name;
    if (sampler == solver.a1111 && none) name = std::string(solver.name) + (automatic ? solver.automatic : "");
    for (const ScheduleName& curve : kSchedules) {
      const bool behind = none && sampler == std::string(solver.a1111) + " " + curve.a1111;
      if (behind || (sampler == solver.a1111 && schedule == curve.a1111))
        name = std::string(solver.name) + curve.suffix;
    }
    if (!name.empty() && is_known(name)) return name;
  }
  return std::nullopt;
}

}  // namespace sdtune::model
