// What pretraining begins with: new weights, or those of models that are there.
#pragma once

#include <map>
#include <string>

#include "train/judge/judge_network.h"
#include "train/pretrain/base_design.h"
#include "train/pretrain/picture_pool.h"
#include "train/pretrain/pretrain_options.h"

namespace sdtune::train::pretrain {

// Words learnt from the pool's captions and weights from the seed; with initial_model that model, on this design's
// schedule; float32 on the CPU. Throws ConfigError for a model of another picture size, and what load_bundle throws.
model::ModelBundle starting_base(const PretrainOptions& options, const BaseDesign& design, const PicturePool& pool);

// The same for the judge, with initial_judge. Throws WeightError.
judge::JudgeNetwork starting_judge(const PretrainOptions& options);

// The models begun with, by content, for a checkpoint's identity: option -> hash. Empty without any. Throws ConfigError
// for what is no folder.
std::map<std::string, std::string> starting_hashes(const PretrainOptions& options);

}  // namespace sdtune::train::pretrain
