// The parts of a model as they stand in a single file: under which prefix, with which names.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "model/pipeline/bundle.h"
#include "model/single_file/ldm_file.h"
#include "model/single_file/ldm_names.h"
#include "model/single_file/model_family.h"
#include "model/single_file/name_table.h"
#include "model/weights/diffusers_folder.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/tensor_source.h"

namespace sdtune::model {

struct LdmPart {
  std::string name;  // unet, vae, text_encoder, text_encoder_2: its folder in diffusers' layout
  PartKind kind;
  std::string prefix;  // of its tensors in the single file
  NameTable names;
  std::shared_ptr<torch::nn::Module> module;
};

// UNet, VAE and text encoder(s) of a bundle whose modules exist; their values are not looked at.
std::vector<LdmPart> ldm_parts(const ModelBundle& bundle, ModelFamily family);

// What of the file belongs to a part.
struct PartTensors {
  NamedTensors tensors;                // ours, in our shapes, as views; what no parameter asks for under its own name
  std::vector<std::string> tolerated;  // names of tensors that carry nothing for us
};

// With `ema` the UNet's values are those of the EMA copy.
PartTensors take_part(const LdmFile& file, const LdmPart& part, bool ema);

// The part's parameters by their LDM names, without prefix; query, key and value are put together.
NamedTensors stored_tensors(const LdmPart& part);

}  // namespace sdtune::model
