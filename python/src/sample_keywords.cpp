#include "python/src/sample_keywords.h"

#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/error.h"
#include "python/src/array_caster.h"
#include "python/src/init_image.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using model::SampleRequest;
using Texts = std::vector<std::string>;

constexpr const char* kSize = "a whole number of pixels";

template <typename T>
std::vector<T> one_or_more(const std::variant<T, std::vector<T>>& given) {
  if (const T* one = std::get_if<T>(&given)) return {*one};
  return std::get<std::vector<T>>(given);
}

void read_random(KeywordReader& keywords, SampleRequest& request) {
  using Seeds = std::variant<std::uint64_t, std::vector<std::uint64_t>>;
  using Generators = std::variant<at::Generator, std::vector<at::Generator>>;
  request.seeds = one_or_more(keywords.take<Seeds>("seed", std::uint64_t{0}, "a whole number from 0, or a list"));
  const py::object generator = keywords.take_object("generator");
  if (!generator.is_none()) {
    try {
      request.generators = one_or_more(generator.cast<Generators>());
    } catch (const py::cast_error&) {
      throw ConfigError("generator", "got " + std::string(py::repr(generator)).substr(0, 80) +
                                         " (allowed: sdtune.Generator, or a list of them)");
    }
  }
  const py::object latents = keywords.take_object("latents");
  if (latents.is_none()) return;
  const std::optional<torch::Tensor> given = tensor_of(latents);
  if (!given) throw ConfigError("latents", "is no array of numbers (allowed: [B, C, h, w])");
  request.latents = *given;
}

// diffusers' default of each pipeline.
double default_guidance_scale(const model::ModelBundle& bundle) {
  return bundle.is_xl() ? 5.0 : 7.5;
}

void read_image(KeywordReader& keywords, SampleRequest& request, const model::ModelBundle& bundle) {
  const py::object image = keywords.take_object("image");
  if (!image.is_none()) request.image = read_init_image(image, bundle, request.height, request.width);
  request.strength = keywords.take<double>("strength", 0.8, "a number in 0..1");
  request.hires.scale = keywords.take<double>("hires_scale", 1.0, "a number from 1");
  request.hires.steps = keywords.take<std::int64_t>("hires_steps", 0, "a whole number");
  request.hires.strength = keywords.take<double>("hires_strength", 0.7, "a number in 0..1");
}

std::vector<std::int64_t> read_timesteps(const py::object& timesteps) {
  try {
    auto given = timesteps.cast<std::vector<std::int64_t>>();
    if (!given.empty()) return given;
  } catch (const py::cast_error&) {  // refused below
  }
  throw ConfigError("timesteps", "got " + std::string(py::repr(timesteps)).substr(0, 80) +
                                     " (allowed: a list of whole numbers, descending)");
}

}  // namespace

Texts texts_of(const py::object& prompt) {
  if (py::isinstance<py::str>(prompt)) return {prompt.cast<std::string>()};
  try {
    return prompt.cast<Texts>();
  } catch (const py::cast_error&) {
    throw ConfigError("prompt", "got " + std::string(py::repr(prompt)).substr(0, 80) + " (allowed: a text or a list)");
  }
}

std::optional<std::string> read_negative_prompt(KeywordReader& keywords) {
  const py::object given = keywords.take_object("negative_prompt");
  if (given.is_none()) return std::nullopt;
  const Texts texts = texts_of(given);
  for (const std::string& text : texts) {
    if (text != texts.front()) {
      throw ConfigError("negative_prompt", "got a list of different texts (allowed: one text for the whole batch)");
    }
  }
  return texts.empty() ? std::nullopt : std::optional(texts.front());
}

model::PromptRules read_prompt_rules(KeywordReader& keywords) {
  model::PromptRules rules;
  const auto syntax = keywords.take<std::string>("prompt_syntax", "plain", "plain, weighted");
  rules.syntax = model::parse_prompt_syntax(syntax, "prompt_syntax");
  rules.clip_skip = keywords.take<std::int64_t>("clip_skip", 0, "a whole number from 0");
  return rules;
}

model::SampleRequest read_sample_request(const py::object& prompt, KeywordReader& keywords,
                                         const model::ModelBundle& bundle) {
  using Pair = std::array<std::int64_t, 2>;
  SampleRequest request;
  const Texts prompts = texts_of(prompt);
  const auto copies = keywords.take<std::int64_t>("num_images_per_prompt", 1, "a whole number from 1");
  if (copies < 1) throw ConfigError("num_images_per_prompt", "got " + std::to_string(copies) + " (allowed: >= 1)");
  for (const std::string& text : prompts) {
    for (std::int64_t copy = 0; copy < copies; ++copy) request.prompts.push_back(text);
  }
  request.negative_prompt = read_negative_prompt(keywords);
  request.prompt_rules = read_prompt_rules(keywords);
  request.steps = keywords.take<std::int64_t>("num_inference_steps", 30, "a whole number from 1");
  const py::object timesteps = keywords.take_object("timesteps");
  if (!timesteps.is_none()) request.timesteps = read_timesteps(timesteps);
  request.height = keywords.take<std::int64_t>("height", 0, kSize);
  request.width = keywords.take<std::int64_t>("width", 0, kSize);
  request.guidance_scale = keywords.take<double>("guidance_scale", default_guidance_scale(bundle), "a number");
  request.guidance_rescale = keywords.take<double>("guidance_rescale", 0.0, "a number in 0..1");
  request.eta = keywords.take<double>("eta", 0.0, "a number in 0..1");
  request.crops_coords_top_left = keywords.take<Pair>("crops_coords_top_left", {0, 0}, "(top, left) in px");
  const py::object original = keywords.take_object("original_size");
  if (!original.is_none()) request.original_size = original.cast<Pair>();
  read_image(keywords, request, bundle);
  read_random(keywords, request);
  return request;
}

}  // namespace sdtune::python
