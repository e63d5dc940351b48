// sdtune.UNet2DConditionModel, AutoencoderKL, CLIPTextModel: the networks one by one, with diffusers' calls.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/clip/text_encoder.h"
#include "model/core/device.h"
#include "model/unet/unet.h"
#include "model/vae/autoencoder_kl.h"
#include "model/weights/model_parts.h"
#include "python/src/array_caster.h"
#include "python/src/compute_scope.h"
#include "python/src/forked_process.h"
#include "python/src/json_convert.h"
#include "python/src/module.h"
#include "python/src/pipeline.h"

namespace py = pybind11;

namespace sdtune::python {
namespace {

using model::AutoencoderKLImpl;
using model::CLIPTextModelImpl;
using model::UNet2DConditionModelImpl;
using Path = std::filesystem::path;
// text_embeds and time_ids by name, as diffusers passes them.
using AddedKeywords = std::optional<std::map<std::string, torch::Tensor>>;

torch::Device device_of(const torch::nn::Module& module) {
  return module.parameters().front().device();
}

model::AddedConditions added_conditions(const AddedKeywords& keywords, torch::Device device) {
  model::AddedConditions added;
  for (const auto& [name, value] : keywords.value_or(std::map<std::string, torch::Tensor>{})) {
    if (name == "text_embeds") {
      added.text_embeds = value.to(device);
    } else if (name == "time_ids") {
      added.time_ids = value.to(device);
    } else {
      throw ConfigError("added_cond_kwargs", "unknown key (got " + name + "; allowed: text_embeds, time_ids)");
    }
  }
  return added;
}

torch::Tensor run_unet(UNet2DConditionModelImpl& unet, const torch::Tensor& sample, const torch::Tensor& timestep,
                       const torch::Tensor& context, const AddedKeywords& added) {
  const torch::Device device = device_of(unet);
  return unet.forward(sample.to(device), timestep, context.to(device), added_conditions(added, device));
}

py::dict named_parameters(const torch::nn::Module& module) {
  py::dict parameters;
  // A copy: an array over the weights would dangle when they are moved to another device.
  for (const auto& item : module.named_parameters()) {
    parameters[py::str(item.key())] = array_of(item.value().detach().clone());
  }
  return parameters;
}

// What every network offers: from_config, config, named_parameters, enable_gradient_checkpointing elsewhere.
template <class Impl, class Config, class Class>
void add_shared_methods(Class& type) {
  type.def_static(
          "from_config",
          [](const py::dict& config) { return std::make_shared<Impl>(Config::from_json(json_of(config), "config")); },
          py::arg("config"), "A network with random weights. WeightError names a key or value that is not supported.")
      .def_property_readonly(
          "config", [](const Impl& self) { return object_of(self.config().to_json()); },
          "The configuration as a dict, as config.json has it.")
      .def(
          "named_parameters", [](const Impl& self) { return named_parameters(self); },
          "A dict of float32 arrays by diffusers' names; copies.");
}

void add_unet(py::module_& module) {
  py::class_<UNet2DConditionModelImpl, std::shared_ptr<UNet2DConditionModelImpl>> type(
      module, "UNet2DConditionModel", "The denoising network, with diffusers' names.");
  type.def_static(
          "from_pretrained",
          [](const Path& path, const std::string& dtype, const std::string& device) {
            const torch::Device where = model::parse_device(device, "device");
            return model::load_unet(path, dtype_on(dtype, where), where).ptr();
          },
          py::arg("path"), py::arg("dtype") = "float32", py::arg("device") = "auto",
          py::call_guard<UnforkedProcess, py::gil_scoped_release>(),
          "Loads a folder with config.json and diffusion_pytorch_model.safetensors, such as MODEL/unet.")
      .def("__call__", &run_unet, py::arg("sample"), py::arg("timestep"), py::arg("encoder_hidden_states"),
           py::arg("added_cond_kwargs") = py::none(), py::call_guard<ComputeScope>(),
           "sample [B, C, H, W], timestep (a number or [B]), encoder_hidden_states [B, L, D] -> [B, C, H, W].");
  add_shared_methods<UNet2DConditionModelImpl, model::UNetConfig>(type);
}

void add_vae(py::module_& module) {
  py::class_<AutoencoderKLImpl, std::shared_ptr<AutoencoderKLImpl>> type(
      module, "AutoencoderKL", "The image autoencoder, with diffusers' names; no scaling factor is applied.");
  type.def_static(
          "from_pretrained",
          [](const Path& path, const std::string& dtype, const std::string& device) {
            const torch::Device where = model::parse_device(device, "device");
            return model::load_vae(path, dtype_on(dtype, where), where).ptr();
          },
          py::arg("path"), py::arg("dtype") = "float32", py::arg("device") = "auto",
          py::call_guard<UnforkedProcess, py::gil_scoped_release>(),
          "Loads a folder with config.json and diffusion_pytorch_model.safetensors, such as MODEL/vae.")
      .def(
          "encode",
          [](AutoencoderKLImpl& self, const torch::Tensor& image) {
            const model::Moments moments = self.encode(image.to(device_of(self)));
            return std::make_pair(moments.mean, moments.logvar);
          },
          py::arg("image"), py::call_guard<ComputeScope>(),
          "[B, 3, H, W] in [-1, 1] -> (mean, logvar), each [B, C, H / f, W / f].")
      .def(
          "decode",
          [](AutoencoderKLImpl& self, const torch::Tensor& latents) {
            return self.decode(latents.to(device_of(self)));
          },
          py::arg("latents"), py::call_guard<ComputeScope>(), "[B, C, h, w] -> [B, 3, h * f, w * f], about [-1, 1].");
  add_shared_methods<AutoencoderKLImpl, model::VaeConfig>(type);
}

void add_text_encoder(py::module_& module) {
  py::class_<CLIPTextModelImpl, std::shared_ptr<CLIPTextModelImpl>> type(
      module, "CLIPTextModel",
      "CLIP's text encoder; CLIPTextModelWithProjection where the config's architectures say so.");
  type.def_static(
          "from_pretrained",
          [](const Path& path, const std::string& dtype, const std::string& device) {
            const torch::Device where = model::parse_device(device, "device");
            return model::load_text_encoder(path, dtype_on(dtype, where), where).ptr();
          },
          py::arg("path"), py::arg("dtype") = "float32", py::arg("device") = "auto",
          py::call_guard<UnforkedProcess, py::gil_scoped_release>(),
          "Loads a folder with config.json and model.safetensors, such as MODEL/text_encoder.")
      .def(
          "__call__",
          [](CLIPTextModelImpl& self, const torch::Tensor& ids) {
            model::TextOutput output = self.forward(ids.to(device_of(self)));
            return std::make_tuple(output.last_hidden_state, output.pooled, output.hidden_states);
          },
          py::arg("ids"), py::call_guard<ComputeScope>(),
          "int64 [B, 77] -> (last [B, 77, D], pooled [B, D] or projected [B, P], list of all hidden states).");
  add_shared_methods<CLIPTextModelImpl, model::ClipTextConfig>(type);
}

// The gradients of mean((output - target)^2) by parameter name, for comparison with other implementations.
template <class Forward>
py::dict gradients_of(torch::nn::Module& module, const torch::Tensor& target, const Forward& forward) {
  {
    require_unforked_process();
    const py::gil_scoped_release unlocked;
    const torch::AutoGradMode with_grad(true);
    module.zero_grad();
    torch::mse_loss(forward(), target.to(device_of(module))).backward();
  }
  py::dict gradients;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor gradient = item.value().grad();
    gradients[py::str(item.key())] = array_of(gradient.defined() ? gradient : torch::zeros_like(item.value()));
  }
  module.zero_grad();
  return gradients;
}

void add_testing(py::module_& module) {
  py::module_ testing = module.def_submodule("testing", "What only tests need.");
  testing.def(
      "unet_gradients",
      [](UNet2DConditionModelImpl& unet, const torch::Tensor& sample, const torch::Tensor& timestep,
         const torch::Tensor& context, const torch::Tensor& target, const AddedKeywords& added, bool checkpointing) {
        unet.set_gradient_checkpointing(checkpointing);
        py::dict gradients =
            gradients_of(unet, target, [&] { return run_unet(unet, sample, timestep, context, added); });
        unet.set_gradient_checkpointing(false);
        return gradients;
      },
      py::arg("unet"), py::arg("sample"), py::arg("timestep"), py::arg("encoder_hidden_states"), py::arg("target"),
      py::arg("added_cond_kwargs") = py::none(), py::arg("gradient_checkpointing") = false,
      "Gradients of mean((output - target)^2) for every parameter of the UNet.");
  testing.def(
      "vae_gradients",
      [](AutoencoderKLImpl& vae, const torch::Tensor& image, const torch::Tensor& target) {
        return gradients_of(vae, target, [&] { return vae.decode(vae.encode(image.to(device_of(vae))).mean); });
      },
      py::arg("vae"), py::arg("image"), py::arg("target"),
      "The same for the autoencoder: decode(mean of encode(image)) against target.");
  testing.def(
      "text_encoder_gradients",
      [](CLIPTextModelImpl& encoder, const torch::Tensor& ids, const torch::Tensor& target, bool checkpointing) {
        encoder.set_gradient_checkpointing(checkpointing);
        py::dict gradients = gradients_of(encoder, target, [&] {
          const model::TextOutput output = encoder.forward(ids.to(device_of(encoder)));
          return torch::cat({output.last_hidden_state.flatten(1), output.pooled}, 1);
        });
        encoder.set_gradient_checkpointing(false);
        return gradients;
      },
      py::arg("text_encoder"), py::arg("ids"), py::arg("target"), py::arg("gradient_checkpointing") = false,
      "The same for the text encoder: the last state, flattened, and the pooled one, joined, against target [B, N].");
}

}  // namespace

void register_models(py::module_& module) {
  module.def(
      "empty_cache", &model::release_tensor_memory,
      "Gives back the memory on the CPU that freed tensors of earlier calls left for the next ones (docs/cpu.md).");
  add_unet(module);
  add_vae(module);
  add_text_encoder(module);
  add_testing(module);
}

}  // namespace sdtune::python
