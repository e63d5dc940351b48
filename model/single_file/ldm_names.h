// The LDM names of each part's parameters, derived from its config: models of any depth and width. The rules are those
// of the CompVis and Stability code, as diffusers' convert_original_stable_diffusion_to_diffusers.py states them.
#pragma once

#include "model/clip/clip_text_config.h"
#include "model/single_file/name_table.h"
#include "model/unet/unet_config.h"
#include "model/vae/vae_config.h"

namespace sdtune::model {

// Down blocks are numbered through, resnets and downsamplers alike (input_blocks), and up blocks too (output_blocks),
// where an upsampler stands behind the last resnet and its transformer.
NameTable ldm_unet_names(const UNetConfig& config);

// LDM counts the decoder's levels from the largest map, diffusers from the smallest; its attention is made of 1 x 1
// convolutions.
NameTable ldm_vae_names(const VaeConfig& config);

// OpenAI's CLIP: transformers' names as they are.
NameTable clip_names();

// OpenCLIP: query, key and value stacked in one tensor, the projection transposed.
NameTable open_clip_names(const ClipTextConfig& config);

}  // namespace sdtune::model
