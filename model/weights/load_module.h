// A module of a known architecture, filled from its part of a diffusers folder.
#pragma once

#include <torch/types.h>

#include <filesystem>

#include "model/nn/initial_values.h"
#include "model/weights/diffusers_folder.h"

namespace sdtune::model {

// In evaluation mode, complete or WeightError (see load_part). No initial values are drawn: every weight is about to be
// loaded.
template <typename Module, typename Config>
Module load_module(const Config& config, const std::filesystem::path& folder, const PartKind& kind, torch::Dtype dtype,
                   torch::Device device) {
  Module module = nullptr;
  {
    const WithoutInitialValues every_weight_is_loaded;
    module = Module(config);
  }
  load_part(*module, folder, kind, dtype, device);
  module->eval();
  return module;
}

}  // namespace sdtune::model
