#include "train/config/run_options.h"

namespace sdtune::train {

namespace {

void add_run_options(TrainOptionGroup group, RunOptions& options) {
  group
      .add("base", &options.base, Resume::kMayChange,  // its files are compared by content
           "Model to start from: a diffusers folder, or a hub id in the local cache; empty: portrait-128, the bundled "
           "base.")
      .aliases({"pretrained_model_name_or_path"})
      .placeholder("DIR|ORG/NAME");
  group.add("output", &options.output, Resume::kMayChange, "Run folder; empty: runs/<name of the photo folder>.")
      .aliases({"output_dir"})
      .placeholder("DIR");
  group.add("overwrite", &options.overwrite, Resume::kMayChange,
            "Delete the run that is in the output folder and start a new one.");
  group
      .add("method", &options.method, Resume::kMustMatch,
           "Trainable parameters: full is all weights, or those of trainable_layers; lora two low-rank matrices for "
           "each of the lora_layers.")
      .choices({"full", "lora"});
  group.add("device", &options.device, Resume::kMayChange, "Device: auto, cpu, cuda or cuda:N.").placeholder("DEVICE");
  group.add("seed", &options.seed, Resume::kMustMatch, "Seed of all random numbers.").at_least(0);
}

void add_training_options(TrainOptionGroup group, RunOptions& options) {
  constexpr double kMost = 1e7;
  group
      .add("max_train_steps", &options.max_train_steps, Resume::kByRule,
           "Optimizer steps; unset: by num_train_epochs, else 100 per photo and at most 1200.")
      .unit("steps")
      .range(1, kMost);
  group
      .add("num_train_epochs", &options.num_train_epochs, Resume::kMayChange,
           "Passes over the photos; used when max_train_steps is unset.")
      .range(1, kMost);
  group
      .add("train_batch_size", &options.train_batch_size, Resume::kMayChange,  // the effective batch is compared
           "Photos per batch of one rank.")
      .range(1, kMost);
  group
      .add("gradient_accumulation_steps", &options.gradient_accumulation_steps, Resume::kMayChange,
           "Batches whose gradients are accumulated for one optimizer step.")
      .range(1, kMost);
  group
      .add("micro_batch", &options.micro_batch, Resume::kMayChange,
           "Photos computed at once, to save memory; must divide train_batch_size. auto: as many as fit, found by a "
           "trial step. Empty: auto on a GPU, the whole batch on a CPU.")
      .placeholder("N|auto");
  group.add("gradient_checkpointing", &options.gradient_checkpointing, Resume::kMayChange,
            "Recompute activations in the backward pass: less memory, slower.");
  group.add(
      "cuda_graphs", &options.cuda_graphs, Resume::kMayChange,
      "Capture forward and backward pass as CUDA graphs, one for each shape of a batch, and replay them: less "
      "time between kernels, more memory. A shape whose graph differs from its eager steps stays eager. On a GPU, "
      "one rank, without lora_dropout.");
  group.add("train_text_encoder", &options.train_text_encoder, Resume::kMustMatch,
            "Train the text encoder(s) as well as the UNet.");
  group
      .add("trainable_layers", &options.trainable_layers, Resume::kMustMatch,
           "Layers that method full trains, the others stay as they are: the last parts of their names, as "
           "lora_layers has them; attention takes to_q, to_k, to_v, to_out.0 and, of text encoders, q_proj, k_proj, "
           "v_proj, out_proj. Empty: all.")
      .placeholder("NAME");
}

}  // namespace

TrainFieldList RunOptions::fields() {
  TrainFieldList list;
  add_run_options({list, "Run"}, *this);
  add_training_options({list, "Training"}, *this);
  return list;
}

}  // namespace sdtune::train
