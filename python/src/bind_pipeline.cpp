// sdtune.StableDiffusionPipeline and StableDiffusionXLPipeline.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/core/device.h"
#include "model/lora/lora_model.h"
#include "model/pipeline/bundle.h"
#include "model/pipeline/textual_inversion.h"
#include "model/single_file/vae_file.h"
#include "python/src/array_caster.h"
#include "python/src/compute_scope.h"
#include "python/src/module.h"
#include "python/src/pipeline.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using model::ModelBundle;

py::object load(const std::filesystem::path& name, const py::object& dtype, const std::string& device) {
  const torch::Dtype wanted = dtype_of(dtype);
  ModelBundle bundle = [&] {
    const ComputeScope scope;
    return model::load_model(model::find_base(name.string()), wanted, model::parse_device(device, "device"));
  }();
  if (bundle.is_xl()) return py::cast(std::make_shared<XLPipeline>(std::move(bundle)));
  return py::cast(std::make_shared<Pipeline>(std::move(bundle)));
}

std::shared_ptr<Pipeline> move_to(std::shared_ptr<Pipeline> self, const py::object& device, const py::object& dtype) {
  ModelBundle& bundle = self->bundle();
  const torch::Dtype new_dtype = dtype.is_none() ? bundle.dtype() : dtype_of(dtype);
  const torch::Device new_device = device.is_none() ? bundle.device() : model::parse_device(py::str(device), "device");
  const ComputeScope scope;
  bundle.to(new_dtype, new_device);
  return self;
}

void load_vae(Pipeline& self, const std::filesystem::path& path) {
  const ComputeScope scope;
  model::replace_vae(self.bundle(), path);
}

void load_textual_inversion(Pipeline& self, const std::filesystem::path& path, const std::string& token) {
  const ComputeScope scope;
  model::add_textual_inversion(self.bundle(), model::read_textual_inversion(path, self.bundle(), token));
}

constexpr const char* kFromPretrained =
    "Loads a diffusers folder, or org/name from the local Hugging Face cache (never downloaded).\n\n"
    "dtype: float32, bfloat16 or float16; device: auto, cpu, cuda or cuda:N. The class of the result is the one that "
    "model_index.json names. Raises WeightError naming file and key, ConfigError for dtype or device.";

constexpr const char* kCall =
    "Draws pictures: pipe(prompt, *, negative_prompt=None, num_inference_steps=30, timesteps=None, guidance_scale=7.5 "
    "(SDXL: 5), "
    "num_images_per_prompt=1, height=None, width=None, seed=0, generator=None, latents=None, output_type='pil', eta=0, "
    "guidance_rescale=0, original_size=None, crops_coords_top_left=(0, 0), prompt_syntax='plain', clip_skip=None, "
    "image=None, strength=0.8, hires_scale=1, hires_steps=None, hires_strength=0.7, "
    "on_step=None).\n\n"
    "prompt: a text or a list. height, width: px, multiples of the VAE's factor; None is the model's own. seed: one "
    "for "
    "the batch, or a list with one a picture; generator: sdtune.Generator(s) instead. latents [B, C, h, w]: start from "
    "these. prompt_syntax: 'weighted' reads (word:1.2) and BREAK and takes prompts of any length, as web interfaces "
    "do. "
    "clip_skip: layers of the text encoder left out. image: begin with this picture (PIL, an array [B, H, W, 3] in "
    "[0, 1], or latents) and run the last strength x steps, as diffusers' Img2Img pipelines. hires_scale: a second "
    "pass over the latents enlarged. timesteps: run over these instead of num_inference_steps. "
    "on_step(event) is told step, total, timestep and "
    "latents. Returns an object with .images: PIL pictures "
    "('pil'), float32 [B, H, W, 3] in [0, 1] ('np') or float32 [B, C, h, w] ('latent'). The same seed gives diffusers' "
    "picture. Raises ConfigError naming the argument; Ctrl-C ends it after the current step.";

void add_output_types(py::module_& module) {
  py::class_<PipelineOutput>(module, "PipelineOutput", "What a pipeline returns.")
      .def_readonly("images", &PipelineOutput::images, "PIL pictures, or an array; see output_type.")
      .def("__getitem__", [](const PipelineOutput& self, std::int64_t index) {
        if (index != 0) throw py::index_error("a pipeline returns pictures alone");
        return self.images;
      });
  py::class_<SampleEvent>(module, "SampleEvent", "What on_step of a pipeline is told.")
      .def_readonly("step", &SampleEvent::step, "1..total")
      .def_readonly("total", &SampleEvent::total, "Calls of the UNet.")
      .def_readonly("timestep", &SampleEvent::timestep)
      .def_property_readonly(
          "latents", [](const SampleEvent& self) { return self.latents; }, "float32 [B, C, h, w]");
}

using PipelineClass = py::class_<Pipeline, std::shared_ptr<Pipeline>>;

// LoRAs, another VAE, textual inversions, and how the VAE goes about it.
void add_additions(PipelineClass& pipeline) {
  pipeline
      .def("load_lora_weights", &Pipeline::load_lora, py::arg("path"), py::arg("scale") = 1.0,
           "Hangs a LoRA on the model: a safetensors file of diffusers, PEFT, kohya or LyCORIS (LoHa, LoKr), a folder "
           "with pytorch_lora_weights.safetensors, or a run folder. Its strength is scale x alpha / rank; several add "
           "up, and the same file again replaces itself. Raises WeightError that counts what does not fit the model.")
      .def("unload_lora_weights", &Pipeline::unload_loras, "Takes all LoRAs off again, fused ones too.")
      .def("fuse_lora", &Pipeline::fuse_loras,
           "Adds the loaded LoRAs to the weights of the model: it draws the same, as fast as without, and "
           "save_pretrained keeps them.")
      .def("unfuse_lora", &Pipeline::unfuse_loras,
           "Takes fused LoRAs out of the weights again, which is right to rounding; they stay loaded.")
      .def("load_vae", &load_vae, py::arg("path"),
           "Another autoencoder: its folder, that of a whole model, or a safetensors file. Raises WeightError.")
      .def("load_textual_inversion", &load_textual_inversion, py::arg("path"), py::arg("token") = "",
           "A safetensors file of A1111 or diffusers; the token calls it in prompts, at first the file's name or "
           "diffusers' key. Raises WeightError, and ConfigError for a token that is there already.")
      .def(
          "unload_textual_inversion", [](Pipeline& self) { model::remove_textual_inversions(self.bundle()); },
          "Forgets all of them.")
      .def(
          "enable_vae_tiling", [](Pipeline& self) { self.bundle().vae->set_tiling(true); },
          "Pictures larger than the VAE's sample_size are encoded and decoded in blended tiles: less memory.")
      .def(
          "disable_vae_tiling", [](Pipeline& self) { self.bundle().vae->set_tiling(false); },
          "Pictures of any size are encoded and decoded whole, as at first.")
      .def(
          "enable_vae_slicing", [](Pipeline& self) { self.bundle().vae->set_slicing(true); },
          "The pictures of a batch are decoded one by one, as at first.")
      .def(
          "disable_vae_slicing", [](Pipeline& self) { self.bundle().vae->set_slicing(false); },
          "The pictures of a batch are decoded at once: more memory.");
}

void add_components(PipelineClass& pipeline) {
  pipeline
      .def_property("scheduler", &Pipeline::scheduler, &Pipeline::set_scheduler,
                    "Any scheduler of sdtune; the folder's own at first.")
      .def_property_readonly("tokenizer", [](Pipeline& self) { return self.bundle().tokenizer; })
      .def_property_readonly("text_encoder", [](Pipeline& self) { return self.bundle().text_encoder.ptr(); })
      .def_property_readonly("unet", [](Pipeline& self) { return self.bundle().unet.ptr(); })
      .def_property_readonly("vae", [](Pipeline& self) { return self.bundle().vae.ptr(); })
      .def_property_readonly(
          "vae_scale_factor", [](Pipeline& self) { return self.bundle().vae_factor(); },
          "Picture pixels a latent pixel, along one axis.")
      .def_property_readonly("dtype", [](Pipeline& self) { return model::dtype_name(self.bundle().dtype()); })
      .def_property_readonly("device", [](Pipeline& self) { return self.bundle().device().str(); })
      .def("__repr__", [](Pipeline& self) {
        return "<sdtune." + self.bundle().pipeline_class + " of " + self.bundle().folder.string() + ">";
      });
}

void add_base(py::module_& module) {
  PipelineClass pipeline(module, "StableDiffusionPipeline", "Text to picture with Stable Diffusion 1.x and 2.x.");
  pipeline
      .def_static("from_pretrained", &load, py::arg("name"), py::arg("dtype") = "float32", py::arg("device") = "auto",
                  kFromPretrained)
      .def("__call__", &Pipeline::draw, py::arg("prompt"), kCall)
      .def("encode_prompt", &Pipeline::encode, py::arg("prompt"),
           "encode_prompt(prompt, *, negative_prompt=None, prompt_syntax='plain', clip_skip=None) -> what the UNet is "
           "told: (prompt, negative) [B, L, D] each; for SDXL also both pooled [B, P]. Several chunks of a weighted "
           "prompt stand behind each other.")
      .def(
          "save_pretrained", &Pipeline::save, py::arg("folder"), py::arg("dtype") = py::none(),
          "Writes a folder that diffusers' from_pretrained loads, with the current scheduler. Weights keep their dtype "
          "unless another is named. Raises StorageError.")
      .def("to", &move_to, py::arg("device") = py::none(), py::arg("dtype") = py::none(),
           "Moves and casts every component; returns the pipeline itself.");
  add_additions(pipeline);
  add_components(pipeline);
}

}  // namespace

void register_pipeline(py::module_& module) {
  add_output_types(module);
  add_base(module);
  py::class_<XLPipeline, Pipeline, std::shared_ptr<XLPipeline>>(module, "StableDiffusionXLPipeline",
                                                                "Text to picture with SDXL: two text encoders.")
      .def_property_readonly("tokenizer_2", [](XLPipeline& self) { return self.bundle().tokenizer_2; })
      .def_property_readonly("text_encoder_2", [](XLPipeline& self) { return self.bundle().text_encoder_2.ptr(); });
}

}  // namespace sdtune::python
