#include "train/run/lora_options.h"

#include <utility>

namespace sdtune::train {

FieldList LoraOptions::fields() {
  const auto field = [](std::string name, std::string help) {
    return FieldInfo{.name = std::move(name), .help = std::move(help), .group = "LoRA (method: lora)"};
  };
  FieldInfo rank_info = field("rank", "Rank of the two matrices that each layer gets.");
  rank_info.aliases = {"lora_rank", "network_dim"};
  rank_info.min = 1;
  rank_info.max = 1024;
  FieldInfo alpha_info = field("lora_alpha", "The branches count alpha / rank; none: the rank, that is in full.");
  alpha_info.aliases = {"network_alpha"};
  alpha_info.min = 0;
  alpha_info.exclusive_min = true;
  FieldInfo dropout = field("lora_dropout", "Share of the numbers that the branches do not see, drawn anew each time.");
  dropout.min = 0;
  dropout.max = 0.99;
  FieldInfo layers = field("lora_layers",
                           "Layers that get a branch: the last names of their paths, '*' for any part of a name; those "
                           "of text encoders only with train_text_encoder. conv1, conv2, proj_in, ff.net.2, ... too.");
  layers.placeholder = "NAME";
  FieldList list;
  list.push_back({std::move(rank_info), &rank});
  list.push_back({std::move(alpha_info), &lora_alpha});
  list.push_back({std::move(dropout), &lora_dropout});
  list.push_back({std::move(layers), &lora_layers});
  return list;
}

}  // namespace sdtune::train
