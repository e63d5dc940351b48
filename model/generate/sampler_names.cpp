#include "model/generate/sampler_names.h"

#include <stdexcept>

namespace sdtune::model {
namespace {

struct SamplerRow {
  const char* name;
  const char* class_name;
  const char* algorithm;  // algorithm_type of DPMSolverMultistepScheduler, or nullptr
  bool has_curves;        // whether use_karras_sigmas and use_exponential_sigmas are keys of the class
  bool has_spacings;      // whether timestep_spacing has an effect
  bool takes_timesteps;   // whether a run may be over given timesteps
};

// An LCM model knows only the timesteps of its distillation, so `lcm` stands alone.
constexpr SamplerRow kRows[] = {
    {"ddim", "DDIMScheduler", nullptr, false, true, false},
    {"ddpm", "DDPMScheduler", nullptr, false, true, true},
    {"pndm", "PNDMScheduler", nullptr, false, true, false},
    {"euler", "EulerDiscreteScheduler", nullptr, true, true, true},
    {"euler_a", "EulerAncestralDiscreteScheduler", nullptr, false, true, false},
    {"heun", "HeunDiscreteScheduler", nullptr, true, true, true},
    {"lms", "LMSDiscreteScheduler", nullptr, true, true, false},
    {"dpm++2m", "DPMSolverMultistepScheduler", "dpmsolver++", true, true, true},
    {"dpm++2m_sde", "DPMSolverMultistepScheduler", "sde-dpmsolver++", true, true, true},
    {"dpm++sde", "DPMSolverSDEScheduler", nullptr, true, true, false},
    {"unipc", "UniPCMultistepScheduler", nullptr, true, true, false},
    {"deis", "DEISMultistepScheduler", nullptr, true, true, false},
    {"lcm", "LCMScheduler", nullptr, false, false, false},
};

constexpr const char* kUsual = "";
constexpr const char* kKarras = "_karras";
constexpr const char* kExponential = "_exponential";
constexpr const char* kTrailing = "_trailing";
constexpr const char* kAligned = "_ays";

std::vector<std::string> schedules_of(const SamplerRow& row) {
  std::vector<std::string> schedules = {kUsual};
  if (row.has_curves) schedules.insert(schedules.end(), {kKarras, kExponential});
  if (row.has_spacings) schedules.emplace_back(kTrailing);
  if (row.takes_timesteps) schedules.emplace_back(kAligned);
  return schedules;
}

Sampler sampler_of(const SamplerRow& row, const std::string& schedule) {
  Sampler sampler{row.class_name, Json::object(), schedule == kAligned};
  if (row.algorithm != nullptr) sampler.changes["algorithm_type"] = row.algorithm;
  if (row.has_curves) {
    sampler.changes["use_karras_sigmas"] = schedule == kKarras;
    sampler.changes["use_exponential_sigmas"] = schedule == kExponential;
  }
  if (schedule == kTrailing) sampler.changes["timestep_spacing"] = "trailing";
  return sampler;
}

}  // namespace

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const SamplerRow& row : kRows) {
    for (const std::string& schedule : schedules_of(row)) names.push_back(row.name + schedule);
  }
  return names;
}

Sampler find_sampler(const std::string& name) {
  for (const SamplerRow& row : kRows) {
    for (const std::string& schedule : schedules_of(row)) {
      if (name == row.name + schedule) return sampler_of(row, schedule);
    }
  }
  throw std::logic_error("no such sampler: " + name);
}

}  // namespace sdtune::model
