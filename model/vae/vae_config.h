// config.json of an AutoencoderKL, with diffusers' names and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/json.h"
#include "model/nn/activation.h"

namespace sdtune::model {

struct VaeConfig {
  int64_t in_channels = 3;
  int64_t out_channels = 3;
  std::vector<int64_t> block_out_channels = {64};  // a DownEncoderBlock2D and an UpDecoderBlock2D each
  int64_t layers_per_block = 1;
  Activation act_fn = Activation::kSilu;
  int64_t latent_channels = 4;
  int64_t norm_num_groups = 32;
  int64_t sample_size = 32;  // px
  double scaling_factor = 0.18215;
  std::optional<double> shift_factor;
  bool force_upcast = true;  // run in float32 even where the rest is half precision
  bool use_quant_conv = true;
  bool use_post_quant_conv = true;
  bool mid_block_add_attention = true;

  bool operator==(const VaeConfig&) const = default;

  int64_t num_levels() const { return static_cast<int64_t>(block_out_channels.size()); }
  // Image pixels a latent pixel, along one axis: 8 for Stable Diffusion.
  int64_t downscale() const { return int64_t{1} << (num_levels() - 1); }

  // Throws WeightError naming `where` and the key for a value or a key we do not support.
  static VaeConfig from_json(const Json& json, const std::string& where);
  Json to_json() const;
};

}  // namespace sdtune::model
