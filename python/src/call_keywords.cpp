#include "python/src/call_keywords.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "model/base/error.h"
#include "python/src/array_caster.h"
#include "python/src/init_image.h"
#include "python/src/module.h"
#include "python/src/option_value.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using Texts = std::vector<std::string>;

// What Python takes beside or instead of a declared option's type.
constexpr std::array<std::pair<const char*, const char*>, 3> kTypes = {
    {{"prompt", "str | Sequence[str]"}, {"negative_prompt", "str | Sequence[str]"}, {"seed", "int | Sequence[int]"}}};

// A keyword that no declared option is: its value is an object of Python.
struct ObjectKeyword {
  const char* name;
  const char* type;
  const char* help;
};
constexpr std::array<ObjectKeyword, 8> kObjects = {
    {{"generator", "Generator | Sequence[Generator]", "Random numbers in place of seed: one, or one an image."},
     {"latents", "ArrayLike", "[B, C, h, w]: begin with these in place of noise."},
     {"image", "object",
      "Init image: PIL, an array [H, W, 3] or [B, H, W, 3] in [0, 1] (uint8: 0..255), or latents [B, C, h, w]; the "
      "last "
      "strength x steps are run, as by diffusers' Img2Img pipelines."},
     {"timesteps", "Sequence[int]", "Run over these, descending, in place of num_inference_steps."},
     {"original_size", "tuple[int, int]", "SDXL's size conditioning: (height, width) in px; unset: the image's size."},
     {"on_step", "Callable[[SampleEvent], object]", "Called after each step with a SampleEvent."},
     {"callback_on_step_end", "Callable[[StableDiffusionPipeline, int, float, dict[str, Any]], dict[str, Any] | None]",
      "diffusers' callback, after each step: (pipe, index from 0, timestep, {\"latents\": ...}); it may return other "
      "latents."},
     {"callback_on_step_end_tensor_inputs", "Sequence[str]",
      "Which arrays it gets (allowed: latents); unset: latents."}}};

std::string shown(const py::handle& value) {
  return std::string(py::repr(value)).substr(0, 80);
}

// Python's own defaults, where diffusers' pipelines have others than the command line.
model::GenerateOptions python_defaults() {
  model::GenerateOptions options;
  options.prompt_syntax = "plain";
  return options;
}

py::dict object_option(const char* name, const char* type, bool optional, py::object fallback, const char* help) {
  py::dict option;
  option["name"] = name;
  option["type"] = type;
  option["optional"] = optional;
  option["default"] = std::move(fallback);
  option["allowed"] = "";
  option["unit"] = "";
  option["group"] = "Python";
  option["help"] = help;
  return option;
}

template <typename T>
std::vector<T> one_or_more(const std::variant<T, std::vector<T>>& given) {
  if (const T* one = std::get_if<T>(&given)) return {*one};
  return std::get<std::vector<T>>(given);
}

Texts texts_of(const py::object& given, const char* name) {
  if (py::isinstance<py::str>(given)) return {given.cast<std::string>()};
  try {
    return given.cast<Texts>();
  } catch (const py::cast_error&) {
    throw ConfigError(name, "got " + shown(given) + " (allowed: a text or a list of texts)");
  }
}

// One text for the batch; diffusers takes lists of different ones as well.
std::optional<std::string> read_negative_prompt(KeywordReader& keywords) {
  const py::object given = keywords.take_object("negative_prompt");
  if (given.is_none()) return std::nullopt;
  const Texts texts = texts_of(given, "negative_prompt");
  for (const std::string& text : texts) {
    if (text != texts.front()) {
      throw ConfigError("negative_prompt", "got a list of different texts (allowed: one text for the whole batch)");
    }
  }
  return texts.empty() ? std::nullopt : std::optional(texts.front());
}

// Declared options whose objects are read elsewhere.
bool is_read_as_object(const std::string& name) {
  return name == "prompt" || name == "negative_prompt" || name == "seed";
}

void read_field(KeywordReader& keywords, const FieldList& fields, const std::string& name) {
  const Field& field = *find_field(fields, name);
  const std::string& keyword = model::python_keyword(field.info);
  const py::object value = keywords.take_object(keyword.c_str());
  if (!value.is_none()) set_field(field, option_text(value), keyword);
}

void read_random(KeywordReader& keywords, model::SampleRequest& request) {
  using Seeds = std::variant<std::uint64_t, std::vector<std::uint64_t>>;
  using Generators = std::variant<at::Generator, std::vector<at::Generator>>;
  const auto first = static_cast<std::uint64_t>(model::GenerateOptions().seed);
  request.seeds = one_or_more(keywords.take<Seeds>("seed", first, "a whole number from 0, or a list"));
  const py::object generator = keywords.take_object("generator");
  if (!generator.is_none()) {
    try {
      request.generators = one_or_more(generator.cast<Generators>());
    } catch (const py::cast_error&) {
      throw ConfigError("generator", "got " + shown(generator) + " (allowed: sdtune.Generator, or a list of them)");
    }
  }
  const py::object latents = keywords.take_object("latents");
  if (latents.is_none()) return;
  const std::optional<torch::Tensor> given = tensor_of(latents);
  if (!given) throw ConfigError("latents", "is no array of numbers (allowed: [B, C, h, w])");
  request.latents = *given;
}

std::vector<std::int64_t> timesteps_of(const py::object& timesteps) {
  try {
    auto given = timesteps.cast<std::vector<std::int64_t>>();
    if (!given.empty()) return given;
  } catch (const py::cast_error&) {  // refused below
  }
  throw ConfigError("timesteps", "got " + shown(timesteps) + " (allowed: a list of whole numbers, descending)");
}

}  // namespace

py::list call_options() {
  py::list options;
  model::GenerateOptions defaults = python_defaults();
  for (const Field& field : defaults.call_fields()) {
    py::dict option = describe_option(field);
    option["name"] = model::python_keyword(field.info);
    for (const auto& [name, type] : kTypes) {
      if (field.info.name == name) option["type"] = type;
    }
    if (field.info.name == "num_images") {  // the program's images have seeds of their own
      option["help"] =
          "Images of each prompt. One seed is of the whole batch, as one generator of diffusers' is; a list gives each "
          "image its own.";
    }
    options.append(option);
  }
  for (const ObjectKeyword& keyword : kObjects) {
    options.append(object_option(keyword.name, keyword.type, true, py::none(), keyword.help));
  }
  options.append(object_option("crops_coords_top_left", "tuple[int, int]", false, py::make_tuple(0, 0),
                               "SDXL's crop conditioning: (top, left) in px."));
  options.append(object_option("output_type", "Literal['pil', 'np', 'latent']", false, py::str("pil"),
                               "What .images holds: PIL images, float32 [B, H, W, 3] in [0, 1], or latents."));
  return options;
}

model::GenerateOptions read_call_options(KeywordReader& keywords) {
  model::GenerateOptions options = python_defaults();
  options.negative_prompt = read_negative_prompt(keywords);
  const FieldList fields = options.call_fields();
  for (const Field& field : fields) {
    if (!is_read_as_object(field.info.name)) read_field(keywords, fields, field.info.name);
  }
  return options;
}

model::GenerateOptions read_text_options(KeywordReader& keywords) {
  model::GenerateOptions options = python_defaults();
  options.negative_prompt = read_negative_prompt(keywords);
  const FieldList fields = options.call_fields();
  read_field(keywords, fields, "prompt_syntax");
  read_field(keywords, fields, "clip_skip");
  return options;
}

Texts read_prompts(const py::object& prompt, std::int64_t copies) {
  Texts prompts;
  for (const std::string& text : texts_of(prompt, "prompt")) {
    prompts.insert(prompts.end(), static_cast<std::size_t>(copies), text);
  }
  return prompts;
}

void read_objects(KeywordReader& keywords, const model::GenerateOptions& asked, const model::ModelBundle& bundle,
                  model::SampleRequest& request) {
  using Pair = std::array<std::int64_t, 2>;
  read_random(keywords, request);
  const py::object timesteps = keywords.take_object("timesteps");
  if (!timesteps.is_none()) request.timesteps = timesteps_of(timesteps);
  request.crops_coords_top_left = keywords.take<Pair>("crops_coords_top_left", {0, 0}, "(top, left) in px");
  request.original_size = keywords.take<std::optional<Pair>>("original_size", std::nullopt, "(height, width) in px");
  const py::object image = keywords.take_object("image");
  if (image.is_none()) return;
  request.image = read_init_image(image, bundle, asked.height.value_or(0), asked.width.value_or(0));
}

}  // namespace sdtune::python
