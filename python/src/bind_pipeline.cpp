// sdtune.StableDiffusionPipeline and StableDiffusionXLPipeline.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/core/device.h"
#include "model/lora/lora_model.h"
#include "model/pipeline/bundle.h"
#include "python/src/array_caster.h"
#include "python/src/call_keywords.h"
#include "python/src/compute_scope.h"
#include "python/src/module.h"
#include "python/src/pipeline.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using model::ModelBundle;

py::object load_pipeline(const std::filesystem::path& name, const py::object& dtype, const std::string& device) {
  const std::string asked = dtype_text(dtype);
  if (const std::string warning = model::device_warning(device); !warning.empty()) {
    if (PyErr_WarnEx(PyExc_RuntimeWarning, warning.c_str(), 1) != 0) throw py::error_already_set();
  }
  ModelNote note;
  ModelBundle bundle = [&] {
    const ComputeScope scope;
    const torch::Device where = model::parse_device(device, "device");
    const torch::Dtype wanted = dtype_on(asked, where);
    const std::filesystem::path folder = model::find_base(name.string());
    note = read_model_note(folder);
    return model::load_model(folder, wanted, where);
  }();
  if (bundle.is_xl()) return py::cast(std::make_shared<XLPipeline>(std::move(bundle), std::move(note)));
  return py::cast(std::make_shared<Pipeline>(std::move(bundle), std::move(note)));
}

constexpr const char* kFromPretrained =
    "Loads a diffusers folder, or org/name from the local Hugging Face cache (never downloaded).\n\n"
    "dtype: float32, bfloat16, float16 or auto, the fastest of the device; device: auto, cpu, cuda or cuda:N. The "
    "class of the result is the one that "
    "model_index.json names. Raises WeightError naming file and key, ConfigError for dtype or device.";

constexpr const char* kCall =
    "Generates images of a prompt, with diffusers' names and, for the same seed, diffusers' images.\n\n"
    "prompt: a text or a list. seed: one for the batch, or a list with one an image; generator: sdtune.Generator(s) "
    "instead. guidance_scale: None is diffusers' default, 7.5 and for SDXL 5. height, width: px, multiples of the "
    "VAE's "
    "factor; None is the model's own. sampler: a name of docs/samplers.md for this call; None is pipe.scheduler. "
    "options() describes every keyword. on_step(event) gets step, total, timestep and latents; it must not call or "
    "change its own pipeline (RuntimeError). Returns an object with .images, see output_type. Raises ConfigError "
    "naming "
    "the keyword, for an unknown one the nearest; NonFiniteError for a PIL image of numbers that are not finite; "
    "OutOfMemoryError; Ctrl-C ends it after the current step.";

constexpr const char* kEncode =
    "The prompt embeddings that the UNet attends to: (prompt, negative) [B, L, D] each; for SDXL also both pooled "
    "[B, P]. The chunks of a weighted prompt are concatenated along L.";

void add_output_types(py::module_& module) {
  py::class_<PipelineOutput>(module, "_PipelineOutput")  // sdtune/_results.py makes PipelineOutput of it
      .def_readonly("images", &PipelineOutput::images);
  py::class_<SampleEvent>(module, "_SampleEvent")  // sdtune/_step_events.py makes SampleEvent of it
      .def_readonly("step", &SampleEvent::step)
      .def_readonly("total", &SampleEvent::total)
      .def_readonly("timestep", &SampleEvent::timestep)
      .def_property_readonly("latents", [](const SampleEvent& self) { return self.latents; })
      // What callback_on_step_end returns; the sampler's next step takes them.
      .def("_replace_latents", [](const SampleEvent& self, const torch::Tensor& latents) {
        if (latents.sizes() != self.latents.sizes()) {
          throw ConfigError("callback_on_step_end", "returned latents of another shape (allowed: that of the event's)");
        }
        const at::NoGradGuard no_grad;
        torch::Tensor(self.latents).copy_(latents);
      });
}

using PipelineClass = py::class_<Pipeline, std::shared_ptr<Pipeline>>;

// LoRAs, another VAE, textual inversions, and how the VAE decodes.
void add_additions(PipelineClass& pipeline) {
  pipeline
      .def("load_lora_weights", &Pipeline::load_lora, py::arg("path"), py::arg("scale") = 1.0,
           "Attaches a LoRA to the model: a safetensors file of diffusers, PEFT, kohya or LyCORIS (LoHa, LoKr), a "
           "folder "
           "with pytorch_lora_weights.safetensors, or a run folder. Its strength is scale x alpha / rank; several add "
           "up, and the same file again replaces itself. Raises WeightError that counts what does not fit the model.")
      .def("unload_lora_weights", &Pipeline::unload_loras,
           "Detaches all LoRAs. What fuse_lora has added to the weights stays there, as in diffusers.")
      .def("fuse_lora", &Pipeline::fuse_loras,
           "Adds the loaded LoRAs to the weights of the model: the same images, as fast as without, and "
           "save_pretrained keeps them.")
      .def("unfuse_lora", &Pipeline::unfuse_loras,
           "Takes fused LoRAs out of the weights again, which is right to rounding; they stay loaded.")
      .def("load_vae", &Pipeline::load_vae, py::arg("path"),
           "Another autoencoder: its folder, that of a whole model, or a safetensors file. Raises WeightError.")
      .def(
          "load_textual_inversion", &Pipeline::load_textual_inversion, py::arg("path"), py::arg("token") = "",
          "A safetensors file of A1111 or diffusers; `token` stands for it in prompts, unless given the file's name or "
          "diffusers' key. Raises WeightError, and ConfigError for a token that exists already.")
      .def("unload_textual_inversion", &Pipeline::unload_textual_inversions, "Removes all of them.")
      .def(
          "enable_vae_tiling", [](Pipeline& self) { self.set_vae_tiling(true); },
          "Images larger than the VAE's sample_size are encoded and decoded in blended tiles: less memory.")
      .def(
          "disable_vae_tiling", [](Pipeline& self) { self.set_vae_tiling(false); },
          "Images of any size are encoded and decoded whole, the default.")
      .def(
          "enable_vae_slicing", [](Pipeline& self) { self.set_vae_slicing(true); },
          "The images of a batch are decoded one by one, the default.")
      .def(
          "disable_vae_slicing", [](Pipeline& self) { self.set_vae_slicing(false); },
          "The images of a batch are decoded at once: more memory.");
}

void add_components(PipelineClass& pipeline) {
  pipeline
      .def_property("scheduler", &Pipeline::scheduler, &Pipeline::set_scheduler,
                    "Any scheduler of sdtune; unless set the folder's own.")
      .def_property_readonly("tokenizer", [](Pipeline& self) { return self.bundle().tokenizer; })
      .def_property_readonly("text_encoder", [](Pipeline& self) { return self.bundle().text_encoder.ptr(); })
      .def_property_readonly("unet", [](Pipeline& self) { return self.bundle().unet.ptr(); })
      .def_property_readonly("vae", [](Pipeline& self) { return self.bundle().vae.ptr(); })
      .def_property_readonly(
          "vae_scale_factor", [](Pipeline& self) { return self.bundle().vae_factor(); },
          "Pixels of the image a latent cell, along one axis.")
      .def_property_readonly("dtype", [](Pipeline& self) { return model::dtype_name(self.bundle().dtype()); })
      .def_property_readonly("device", [](Pipeline& self) { return self.bundle().device().str(); })
      .def("_encode_images", &Pipeline::encode_images, py::arg("images"))                 // for previews of latents
      .def_property("_interrupt", &Pipeline::is_interrupted, &Pipeline::set_interrupted)  // diffusers' callbacks set it
      .def("__repr__", [](Pipeline& self) {
        return "<sdtune." + self.bundle().pipeline_class + " of " + valid_text(self.bundle().folder.string()) + ">";
      });
}

void add_base(py::module_& module) {
  PipelineClass pipeline(module, "StableDiffusionPipeline", "Text to image with Stable Diffusion 1.x and 2.x.");
  pipeline
      .def_static("from_pretrained", &load_pipeline, py::arg("name"), py::arg("dtype") = "float32",
                  py::arg("device") = "auto", kFromPretrained)
      .def("__call__", &Pipeline::generate, py::arg("prompt"), kCall)
      .def_static("options", &call_options,
                  "Every keyword of a call as a dict: name, type, optional, default, allowed, unit, group, help.")
      .def("encode_prompt", &Pipeline::encode, py::arg("prompt"), kEncode)
      .def(
          "save_pretrained", &Pipeline::save, py::arg("folder"), py::arg("dtype") = py::none(),
          "Writes a folder that diffusers' from_pretrained loads, with the current scheduler. Weights keep their dtype "
          "unless another is named. A model that is there is replaced, the whole folder. Raises ConfigError for a "
          "folder of other files, and StorageError.")
      .def(
          "to",
          [](std::shared_ptr<Pipeline> self, const py::object& device, const py::object& dtype) {
            self->move_to(device, dtype);
            return self;
          },
          py::arg("device") = py::none(), py::arg("dtype") = py::none(),
          "Moves and casts every component; returns the pipeline itself.");
  add_additions(pipeline);
  add_components(pipeline);
}

}  // namespace

void register_pipeline(py::module_& module) {
  add_output_types(module);
  add_base(module);
  py::class_<XLPipeline, Pipeline, std::shared_ptr<XLPipeline>>(module, "StableDiffusionXLPipeline",
                                                                "Text to image with SDXL: two text encoders.")
      .def_property_readonly("tokenizer_2", [](XLPipeline& self) { return self.bundle().tokenizer_2; })
      .def_property_readonly("text_encoder_2", [](XLPipeline& self) { return self.bundle().text_encoder_2.ptr(); });
}

}  // namespace sdtune::python
