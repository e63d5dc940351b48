#include "train/checkpoint/checkpoint_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Checkpoints"};
}

}  // namespace

FieldList CheckpointOptions::fields() {
  FieldInfo every = field("checkpointing_steps", "Optimizer steps between two checkpoints.");
  every.unit = "steps";
  every.min = 1;
  FieldInfo limit = field("checkpoints_total_limit", "Newest checkpoints that are kept; none: all of them.");
  limit.min = 1;
  FieldInfo resume = field("resume_from_checkpoint",
                           "Go on from 'latest' (an error if there is none), 'auto' (else fresh) or a folder.");
  resume.placeholder = "latest|auto|DIR";
  FieldList list;
  list.push_back({std::move(every), &checkpointing_steps});
  list.push_back({std::move(limit), &checkpoints_total_limit});
  list.push_back({std::move(resume), &resume_from_checkpoint});
  return list;
}

}  // namespace sdtune::train
