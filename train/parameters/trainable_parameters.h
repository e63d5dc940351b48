// Which parameters of a bundle are trained, under which names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/pipeline/bundle.h"

namespace sdtune::train {

// Rate groups: which of the learning rates a parameter has.
inline constexpr std::int64_t kUnetGroup = 0;
inline constexpr std::int64_t kTextGroup = 1;

struct ModuleParameter {
  std::string name;      // "unet.conv_in.weight"
  torch::Tensor weight;  // the module's own
  std::int64_t rate_group = kUnetGroup;
};

// The components that are trained: unet, then text_encoder, text_encoder_2.
std::vector<std::string> trainable_components(const model::ModelBundle& bundle, bool train_text_encoder);

// The starts of the names that the loss does not depend on: in SDXL the first encoder's last layer and final norm,
// because its states are taken before them.
std::vector<std::string> unused_parameters(const model::ModelBundle& bundle);

// Their parameters in the order that forward uses them, text encoders first, without the unused ones: of the layers
// that one of `layers` selects (model::selects_layer), all of them where there are none. Throws ConfigError: one
// selects nothing, or a component that is to be trained has no selected layer.
std::vector<ModuleParameter> trainable_parameters(const model::ModelBundle& bundle, bool train_text_encoder,
                                                  const std::vector<std::string>& layers = {});

// Every other parameter of these components.
std::vector<ModuleParameter> fixed_parameters(const model::ModelBundle& bundle, bool train_text_encoder,
                                              const std::vector<std::string>& layers);

// Requires gradients of these parameters and of nothing else in the bundle.
void freeze_all_but(const model::ModelBundle& bundle, const std::vector<ModuleParameter>& trained);

std::int64_t count_parameters(const model::ModelBundle& bundle);

}  // namespace sdtune::train
