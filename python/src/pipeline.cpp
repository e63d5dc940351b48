#include "python/src/pipeline.h"

#include <pybind11/stl.h>

#include <atomic>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/file_system.h"
#include "model/core/device.h"
#include "model/pipeline/text_conditions.h"
#include "model/pipeline/text_to_image.h"
#include "python/src/array_caster.h"
#include "python/src/compute_scope.h"
#include "python/src/interrupt_scope.h"
#include "python/src/keyword_reader.h"
#include "python/src/module.h"
#include "python/src/sample_keywords.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

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
  model::SampleRequest request = read_sample_request(prompt, keywords, bundle_);
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

py::tuple Pipeline::encode(const py::object& prompt, const py::kwargs& given) {
  KeywordReader keywords(given, {"prompt"});
  const std::vector<std::string> prompts = texts_of(prompt);
  if (prompts.empty()) throw ConfigError("prompt", "is an empty list (allowed: a text or a list of them)");
  const std::optional<std::string> negative = read_negative_prompt(keywords);
  const model::PromptRules rules = read_prompt_rules(keywords);
  keywords.finish();
  model::GuidedTexts texts;
  {
    const ComputeScope scope;
    const std::lock_guard<std::mutex> alone(busy_);
    texts = model::encode_texts(bundle_, prompts, negative, rules, true);
  }
  const auto [context, pooled] = texts.conditional;
  const auto [other_context, other_pooled] = texts.unconditional;
  if (!bundle_.is_xl()) return py::make_tuple(context, other_context);
  return py::make_tuple(context, other_context, pooled, other_pooled);
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
