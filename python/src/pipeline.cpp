#include "python/src/pipeline.h"

#include <pybind11/stl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/core/device.h"
#include "model/core/image_tensor.h"
#include "model/files/file_system.h"
#include "model/machine/compute_dtype.h"
#include "model/pipeline/text_conditions.h"
#include "model/pipeline/text_to_image.h"
#include "python/src/array_caster.h"
#include "python/src/call_keywords.h"
#include "python/src/compute_scope.h"
#include "python/src/interrupt_scope.h"
#include "python/src/keyword_reader.h"
#include "python/src/module.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

// Before the work, so that no image is generated in vain.
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

// [B, 3, H, W] in [0, 1] -> PIL images.
py::list pil_images(const torch::Tensor& images) {
  const py::object from_array = py::module_::import("PIL.Image").attr("fromarray");
  py::list list;
  for (const torch::Tensor& image : model::pixels_to_bytes(images).unbind()) list.append(from_array(array_of(image)));
  return list;
}

std::function<void(const model::SampleProgress&)> step_callback(const py::object& callback) {
  if (callback.is_none()) return {};
  return [callback](const model::SampleProgress& progress) {
    const py::gil_scoped_acquire locked;
    callback(SampleEvent{progress.step, progress.total, progress.timestep, progress.latents});
  };
}

// SDXL's in float16 would overflow. A copy in float32, since the VAE itself may be decoding in another thread.
model::AutoencoderKL encoding_vae(const model::ModelBundle& bundle) {
  const bool is_half = bundle.vae->parameters().front().scalar_type() == torch::kFloat16;
  if (!bundle.is_xl() || !bundle.vae->config().force_upcast || !is_half) return bundle.vae;
  model::AutoencoderKL copy(bundle.vae->config());
  copy->to(bundle.device());
  const auto weights = bundle.vae->named_parameters();
  for (auto& item : copy->named_parameters()) item.value().copy_(weights[item.key()]);
  return copy;
}

// The folder is replaced as a whole, with all that is in it.
void require_replaceable(const std::filesystem::path& folder) {
  std::error_code status;
  if (!std::filesystem::exists(folder, status) || std::filesystem::is_empty(folder, status)) return;
  if (is_file(folder / "model_index.json")) return;
  throw ConfigError("folder", "has files in it and is no model (got " + folder.string() + ")",
                    "name a folder that is not there yet, or a model's, which is replaced");
}

}  // namespace

std::string dtype_text(const py::handle& object) {
  const std::string name = py::str(object);
  return name.starts_with("torch.") ? name.substr(6) : name;
}

torch::Dtype dtype_of(const py::handle& object) {
  return model::parse_dtype(dtype_text(object), "dtype");
}

torch::Dtype dtype_on(const std::string& asked, torch::Device device) {
  const torch::Dtype chosen = model::choose_dtype(asked, device, model::ComputeUse::kSample, "dtype");
  if (const std::string note = model::unknown_processor_note(asked, device); !note.empty()) {
    const py::gil_scoped_acquire locked;
    if (PyErr_WarnEx(PyExc_RuntimeWarning, note.c_str(), 1) != 0) throw py::error_already_set();
  }
  return chosen;
}

Pipeline::Pipeline(model::ModelBundle bundle, ModelNote note)
    : bundle_(std::move(bundle)), note_(std::move(note)), scheduler_(wrap_scheduler(model::make_sampler(bundle_))) {
  note_.base = note_.base_fingerprint = "";  // a LoRA's; here it is part of a whole model
}

void Pipeline::set_scheduler(const py::object& scheduler) {
  unwrap_scheduler(scheduler);
  const UseScope use(use_);
  scheduler_ = scheduler;
}

py::object Pipeline::generate(const py::object& prompt, const py::kwargs& given) {
  const UseScope use(use_);
  KeywordReader keywords(given, {"prompt"});
  const model::GenerateOptions options = read_call_options(keywords);
  const auto type = keywords.take<std::string>("output_type", "pil", "pil, np, latent");
  const py::object callback = keywords.take_object("on_step");
  std::unique_ptr<model::Scheduler> sampler;
  if (options.sampler) sampler = generator_.make_scheduler(options);
  model::Scheduler& scheduler = sampler ? *sampler : unwrap_scheduler(scheduler_);
  model::SampleRequest request = generator_.make_request(options, scheduler);
  request.prompts = read_prompts(prompt, options.num_images);
  read_objects(keywords, options, bundle_, request);
  keywords.finish();
  check_output_type(type);

  std::atomic<bool> stop{false};
  is_interrupted_.store(false);
  const model::SampleCallbacks callbacks{step_callback(callback), &stop, &is_interrupted_};
  InterruptScope interrupt(stop);
  torch::Tensor result;
  {
    const ComputeScope scope;
    result = model::generate_latents(bundle_, scheduler, request, callbacks);
    if (result.defined() && type != "latent") result = model::decode_latents(bundle_, result);
  }
  interrupt.finish();
  if (!result.defined()) return py::cast(PipelineOutput{py::none()});  // a handler of the program's own took Ctrl-C
  if (type == "pil") return py::cast(PipelineOutput{pil_images(result)});
  if (type == "np") result = result.permute({0, 2, 3, 1}).contiguous();
  return py::cast(PipelineOutput{array_of(std::move(result))});
}

py::tuple Pipeline::encode(const py::object& prompt, const py::kwargs& given) {
  const UseScope use(use_);
  KeywordReader keywords(given, {"prompt"});
  const std::vector<std::string> prompts = read_prompts(prompt);
  if (prompts.empty()) throw ConfigError("prompt", "is an empty list (allowed: a text or a list of them)");
  const model::GenerateOptions options = read_text_options(keywords);
  keywords.finish();
  const model::PromptRules rules = model::prompt_rules(options);
  model::GuidedTexts texts;
  {
    const ComputeScope scope;
    texts = model::encode_texts(bundle_, prompts, options.negative_prompt, rules, true);
  }
  const auto [context, pooled] = texts.conditional;
  const auto [other_context, other_pooled] = texts.unconditional;
  if (!bundle_.is_xl()) return py::make_tuple(context, other_context);
  return py::make_tuple(context, other_context, pooled, other_pooled);
}

torch::Tensor Pipeline::encode_images(const torch::Tensor& images) const {
  const ComputeScope scope;
  return encoding_vae(bundle_)->encode(images.to(bundle_.device())).mean;
}

void Pipeline::save(const std::filesystem::path& folder, const py::object& dtype) {
  const UseScope use(use_);
  require_replaceable(folder);
  const torch::Dtype file_dtype = dtype.is_none() ? bundle_.dtype() : dtype_of(dtype);
  const model::Scheduler& scheduler = unwrap_scheduler(scheduler_);
  model::ModelBundle saved = bundle_;  // `sampler` changes the scheduler that was loaded, before a save and after it
  saved.scheduler_class = scheduler.class_name();
  saved.scheduler_config = scheduler.config();
  const ComputeScope scope;
  const auto add_note = [&](const std::filesystem::path& partial) {
    if (!note_.trigger.empty() || note_.rendered_people) write_model_note(real_file_system(), note_, partial);
  };
  model::save_bundle(real_file_system(), saved, folder, file_dtype, {.add = add_note});
}

void Pipeline::move_to(const py::object& device, const py::object& dtype) {
  const UseScope use(use_);
  const torch::Dtype new_dtype = dtype.is_none() ? bundle_.dtype() : dtype_of(dtype);
  const torch::Device new_device = device.is_none() ? bundle_.device() : model::parse_device(py::str(device), "device");
  const ComputeScope scope;
  bundle_.to(new_dtype, new_device);
}

}  // namespace sdtune::python
