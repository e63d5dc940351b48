// What pretraining begins with: new weights, or those of models that are there.
#pragma once

#include <map>
#include <string>

#include "train/portrait/classifier/classifier_network.h"
#include "train/portrait/pretrain/base_design.h"
#include "train/portrait/pretrain/image_pool.h"
#include "train/portrait/pretrain/pretrain_options.h"

namespace sdtune::train::pretrain {

// Words learnt from the pool's captions and weights from the seed; with initial_model that model, on this design's
// schedule; float32 on the CPU. Throws ConfigError for a model of another image size, and what load_bundle throws.
model::ModelBundle starting_base(const PretrainOptions& options, const BaseDesign& design, const ImagePool& pool);

// The same for the classifier, with initial_classifier. Throws WeightError; ConfigError for one of another image size.
classifier::ClassifierNetwork starting_classifier(const PretrainOptions& options, const BaseDesign& design);

// The values of one module for another of the same parameters.
void copy_weights(const torch::nn::Module& from, torch::nn::Module& to);

// The models begun with, by content, for a checkpoint's identity: option -> hash. Empty without any. Throws ConfigError
// for what is no folder, and for a decoder to train without a model.
std::map<std::string, std::string> starting_hashes(const PretrainOptions& options);

}  // namespace sdtune::train::pretrain
