#include "app/commands/sampler_names.h"

#include <stdexcept>

namespace sdtune::app {
namespace {

struct Row {
  const char* name;
  const char* class_name;
  const char* algorithm;  // algorithm_type of DPMSolverMultistepScheduler, or nullptr
  bool has_karras;        // whether use_karras_sigmas is a key of the class
};

constexpr Row kRows[] = {
    {"ddim", "DDIMScheduler", nullptr, false},
    {"ddpm", "DDPMScheduler", nullptr, false},
    {"pndm", "PNDMScheduler", nullptr, false},
    {"euler", "EulerDiscreteScheduler", nullptr, true},
    {"euler_a", "EulerAncestralDiscreteScheduler", nullptr, false},
    {"dpm++2m", "DPMSolverMultistepScheduler", "dpmsolver++", true},
    {"dpm++2m_sde", "DPMSolverMultistepScheduler", "sde-dpmsolver++", true},
};

constexpr const char* kKarras = "_karras";

}  // namespace

std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    names.emplace_back(row.name);
    if (row.has_karras) names.push_back(std::string(row.name) + kKarras);
  }
  return names;
}

Sampler find_sampler(const std::string& name) {
  for (const Row& row : kRows) {
    const bool karras = row.has_karras && name == std::string(row.name) + kKarras;
    if (name != row.name && !karras) continue;
    Sampler sampler{row.class_name, Json::object()};
    if (row.algorithm != nullptr) sampler.changes["algorithm_type"] = row.algorithm;
    if (row.has_karras) sampler.changes["use_karras_sigmas"] = karras;
    return sampler;
  }
  throw std::logic_error("no such sampler: " + name);
}

}  // namespace sdtune::app
