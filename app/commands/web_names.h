// The sampler names of AUTOMATIC1111's web interface, which picture texts are written with.
#pragma once

#include <optional>
#include <string>

namespace sdtune::app {

// "dpm++2m_karras" -> "DPM++ 2M, Schedule type: Karras". Call contract: one of sampler_names().
std::string web_sampler_text(const std::string& sampler);

// Diffusers' scheduler class in these words, "PNDMScheduler" -> "PLMS"; itself where they have none.
std::string web_sampler_of_class(const std::string& class_name);

// "DPM++ 2M" with schedule type "Karras" (which old texts write behind the sampler) -> "dpm++2m_karras"; nothing for
// what has no name here. `schedule` may be empty or "Automatic".
std::optional<std::string> sampler_of_web(const std::string& sampler, const std::string& schedule);

}  // namespace sdtune::app
