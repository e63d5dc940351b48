#include "train/config/lora_options.h"

namespace sdtune::train {

TrainFieldList LoraOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "LoRA (method: lora)");
  group.add("rank", &rank, Resume::kMustMatch, "Rank of the two low-rank matrices of each layer.")
      .aliases({"lora_rank", "network_dim"})
      .range(1, 1024);
  group
      .add("lora_alpha", &lora_alpha, Resume::kMustMatch,
           "Scale of the LoRA: its output is multiplied by lora_alpha / rank; unset: equal to rank.")
      .aliases({"network_alpha"})
      .above(0);
  group.add("lora_dropout", &lora_dropout, Resume::kMustMatch, "Dropout probability of the LoRA's inputs.")
      .range(0, 0.99);
  group
      .add("lora_layers", &lora_layers, Resume::kMustMatch,
           "Layers that get a LoRA: the last parts of their names, where '*' matches any part; text encoder layers "
           "only with train_text_encoder. Also possible: conv1, conv2, proj_in, ff.net.2, ...")
      .placeholder("NAME");
  return list;
}

}  // namespace sdtune::train
