// The sampler names of AUTOMATIC1111's web interface, which image metadata are written with.
#pragma once

#include <optional>
#include <string>

#include "model/base/json.h"

namespace sdtune::model {

// "dpm++2m_karras" -> "DPM++ 2M, Schedule type: Karras". Call contract: one of sampler_names().
std::string a1111_sampler_text(const std::string& sampler);

// Diffusers' scheduler class with this config, of which every key is read, in these words: "PNDMScheduler" -> "PLMS",
// "DPMSolverMultistepScheduler" with use_karras_sigmas -> "DPM++ 2M, Schedule type: Karras"; the class where they have
// no name for it.
std::string a1111_sampler_of_class(const std::string& class_name, const Json& config);

// "DPM++ 2M" with schedule type "Karras" (which old texts write behind the sampler) -> "dpm++2m_karras"; nothing for
// what has no name here. `schedule` may be empty (an old text's plain one), "Uniform" (the plain one) or "Automatic"
// (the one that A1111 takes for the solver since version 1.9).
std::optional<std::string> sampler_of_a1111(const std::string& sampler, const std::string& schedule);

}  // namespace sdtune::model
