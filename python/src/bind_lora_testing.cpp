// sdtune._native.testing.lora_pass: forward and backward through the branches of a LoRA, for comparison with PEFT.
#include <ATen/ops/mse_loss.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/lora/lora_layers.h"
#include "python/src/array_caster.h"
#include "python/src/module.h"
#include "python/src/pipeline.h"

namespace py = pybind11;

namespace sdtune::python {

namespace {

using Keywords = std::map<std::string, torch::Tensor>;

model::AddedConditions conditions_of(const std::optional<Keywords>& added) {
  if (!added) return {};
  return {added->at("text_embeds"), added->at("time_ids")};
}

// The branches attached to the UNet, ready for a gradient.
std::vector<model::LoraLayer> layers_with_branches(const model::ModelBundle& bundle) {
  std::vector<model::LoraLayer> layers;
  for (const model::LoraLayer& entry : model::lora_layers(bundle)) {
    if (!entry.path.starts_with("unet.") || entry.layer->branches.empty()) continue;
    for (model::LowRankBranch& branch : entry.layer->branches) {
      branch.down = branch.down.detach().clone().requires_grad_(true);
      branch.up = branch.up.detach().clone().requires_grad_(true);
    }
    layers.push_back(entry);
  }
  return layers;
}

py::tuple lora_pass(Pipeline& pipeline, const torch::Tensor& sample, const torch::Tensor& timestep,
                    const torch::Tensor& context, const torch::Tensor& target, const std::optional<Keywords>& added) {
  model::ModelBundle& bundle = pipeline.bundle();
  const std::vector<model::LoraLayer> layers = layers_with_branches(bundle);
  torch::Tensor output;
  {
    const py::gil_scoped_release unlocked;
    const at::AutoGradMode with_grad(true);
    output = bundle.unet->forward(sample, timestep, context, conditions_of(added));
    torch::mse_loss(output, target).backward();
  }
  py::dict gradients;
  for (const model::LoraLayer& entry : layers) {
    const model::LowRankBranch& branch = entry.layer->branches.front();
    gradients[py::str(entry.path)] = py::make_tuple(array_of(branch.down.grad()), array_of(branch.up.grad()));
  }
  return py::make_tuple(array_of(output.detach()), gradients);
}

}  // namespace

void register_testing_lora(py::module_& testing) {
  testing.def("lora_pass", &lora_pass, py::arg("pipeline"), py::arg("sample"), py::arg("timestep"),
              py::arg("encoder_hidden_states"), py::arg("target"), py::arg("added_cond_kwargs") = py::none(),
              "The UNet's output with the pipeline's LoRA, and the gradients of mean((output - target)^2) for its two "
              "matrices by layer: (output, {path: (down, up)}).");
}

}  // namespace sdtune::python
