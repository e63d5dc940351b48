#include "python/src/pipeline.h"

#include <pybind11/stl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "model/base/error.h"
#include "model/base/file_system.h"
#include "model/core/device.h"
#include "model/pipeline/text_to_image.h"
#include "python/src/array_caster.h"
#include "python/src/compute_scope.h"
#include "python/src/interrupt_scope.h"
#include "python/src/keyword_reader.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using model::SampleRequest;
using Texts = std::vector<std::string>;

constexpr const char* kSize = "a whole number of pixels";

Texts texts_of(const py::object& prompt) {
  if (py::isinstance<py::str>(prompt)) return {prompt.cast<std::string>()};
  try {
    return prompt.cast<Texts>();
  } catch (const py::cast_error&) {
    throw ConfigError("prompt", "got " + std::string(py::repr(prompt)).substr(0, 80) + " (allowed: a text or a list)");
  }
}

// Diffusers takes a list as well; one text for all is what we run.
std::optional<std::string> negative_of(const py::object& given) {
  if (given.is_none()) return std::nullopt;
  const Texts texts = texts_of(given);
  for (const std::string& text : texts) {
    if (text != texts.front()) {
      throw ConfigError("negative_prompt", "got a list of different texts (allowed: one text for the whole batch)");
    }
  }
  return texts.empty() ? std::nullopt : std::optional(texts.front());
}

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

std::vector<std::int64_t> read_timesteps(const py::object& timesteps) {
  try {
    auto given = timesteps.cast<std::vector<std::int64_t>>();
    if (!given.empty()) return given;
  } catch (const py::cast_error&) {  // refused below
  }
  throw ConfigError("timesteps", "got " + std::string(py::repr(timesteps)).substr(0, 80) +
                                     " (allowed: a list of whole numbers, descending)");
}

SampleRequest read_request(const py::object& prompt, KeywordReader& keywords) {
  using Pair = std::array<std::int64_t, 2>;
  SampleRequest request;
  const Texts prompts = texts_of(prompt);
  const auto copies = keywords.take<std::int64_t>("num_images_per_prompt", 1, "a whole number from 1");
  if (copies < 1) throw ConfigError("num_images_per_prompt", "got " + std::to_string(copies) + " (allowed: >= 1)");
  for (const std::string& text : prompts) {
    for (std::int64_t copy = 0; copy < copies; ++copy) request.prompts.push_back(text);
  }
  request.negative_prompt = negative_of(keywords.take_object("negative_prompt"));
  request.steps = keywords.take<std::int64_t>("num_inference_steps", 30, "a whole number from 1");
  const py::object timesteps = keywords.take_object("timesteps");
  if (!timesteps.is_none()) request.timesteps = read_timesteps(timesteps);
  request.height = keywords.take<std::int64_t>("height", 0, kSize);
  request.width = keywords.take<std::int64_t>("width", 0, kSize);
  request.guidance_scale = keywords.take<double>("guidance_scale", 7.5, "a number");
  request.guidance_rescale = keywords.take<double>("guidance_rescale", 0.0, "a number in 0..1");
  request.eta = keywords.take<double>("eta", 0.0, "a number in 0..1");
  request.crops_coords_top_left = keywords.take<Pair>("crops_coords_top_left", {0, 0}, "(top, left) in px");
  const py::object original = keywords.take_object("original_size");
  if (!original.is_none()) request.original_size = original.cast<Pair>();
  read_random(keywords, request);
  return request;
}

// Before the work, so that a picture is not drawn for nothing.
void check_output_type(const std::string& type) {
  if (type != "pil" && type != "np" && type != "latent") {
    throw ConfigError("output_type", "got " + type + " (allowed: pil, np, latent)");
  }
  if (type != "pil") return;
  try {
    py::module_::import("PIL.Image");
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw ConfigError("output_type", "pil needs Pillow, which is not installed (allowed without it: np, latent)",
                      "pip install pillow");
  }
}

// [B, H, W, 3] in [0, 1] -> PIL pictures, rounded as diffusers rounds.
py::list pil_pictures(const torch::Tensor& pictures) {
  const py::object from_array = py::module_::import("PIL.Image").attr("fromarray");
  py::list list;
  for (const torch::Tensor& picture : pictures.mul(255).round().to(torch::kUInt8).unbind()) {
    list.append(from_array(array_of(picture)));
  }
  return list;
}

std::function<void(const model::SampleProgress&)> step_callback(const py::object& callback) {
  if (callback.is_none()) return {};
  return [callback](const model::SampleProgress& progress) {
    const py::gil_scoped_acquire locked;
    callback(SampleEvent{progress.step, progress.total, progress.timestep, progress.latents});
  };
}

}  // namespace

torch::Dtype dtype_of(const py::handle& object) {
  std::string name = py::str(object);
  if (name.starts_with("torch.")) name = name.substr(6);
  return model::parse_dtype(name, "dtype");
}

Pipeline::Pipeline(model::ModelBundle bundle)
    : bundle_(std::move(bundle)), scheduler_(wrap_scheduler(model::make_sampler(bundle_))) {}

void Pipeline::set_scheduler(const py::object& scheduler) {
  unwrap_scheduler(scheduler);
  scheduler_ = scheduler;
}

py::object Pipeline::draw(const py::object& prompt, const py::kwargs& given) {
  KeywordReader keywords(given, {"prompt"});
  SampleRequest request = read_request(prompt, keywords);
  const auto type = keywords.take<std::string>("output_type", "pil", "pil, np, latent");
  const py::object callback = keywords.take_object("on_step");
  keywords.finish();
  check_output_type(type);

  request.on_step = step_callback(callback);
  std::atomic<bool> stop{false};
  request.stop = &stop;
  InterruptScope interrupt(stop);
  const py::object kept = scheduler_;  // alive, should a callback set another one
  model::Scheduler& scheduler = unwrap_scheduler(kept);
  torch::Tensor result;
  {
    const ComputeScope scope;
    const std::lock_guard<std::mutex> alone(busy_);
    result = model::draw_latents(bundle_, scheduler, request);
    if (result.defined() && type != "latent") {
      result = model::decode_latents(bundle_, result).permute({0, 2, 3, 1}).contiguous();
    }
  }
  interrupt.finish();
  if (type == "pil") return py::cast(PipelineOutput{pil_pictures(result)});
  return py::cast(PipelineOutput{array_of(std::move(result))});
}

void Pipeline::save(const std::filesystem::path& folder, const py::object& dtype) {
  const torch::Dtype file_dtype = dtype.is_none() ? bundle_.dtype() : dtype_of(dtype);
  const model::Scheduler& scheduler = unwrap_scheduler(scheduler_);
  bundle_.scheduler_class = scheduler.class_name();
  bundle_.scheduler_config = scheduler.config();
  const ComputeScope scope;
  model::save_bundle(real_file_system(), bundle_, folder, file_dtype);
}

}  // namespace sdtune::python
