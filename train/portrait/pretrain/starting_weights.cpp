#include "train/portrait/pretrain/starting_weights.h"

#include <ATen/core/grad_mode.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/pipeline/bundle.h"
#include "model/tokenizer/byte_pair_learner.h"
#include "train/portrait/classifier/classifier_file.h"
#include "train/portrait/pretrain/initial_weights.h"
#include "train/resume/resume_fingerprint.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kTokenizerTexts = 20000;
constexpr std::uint64_t kClassifierWeights = 3;  // stream of initial weights, after the base's three parts

// The words of the captions decide the vocabulary; the same pool gives the same one.
ClipTokenizer learn_words(const ImagePool& pool, const BaseDesign& design) {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < kTokenizerTexts; ++i) texts.push_back(pool.portrait(i).caption);
  return learn_tokenizer(texts, design.vocabulary);
}

void require_folder(const std::string& option, const std::string& path) {
  if (std::filesystem::is_directory(path)) return;
  throw ConfigError(option, "is not a folder (got " + path + "; allowed: the folder of a model)");
}

// Another base's words, and the text encoder that knows them.
model::ModelBundle base_with_words_of(const std::string& folder, const BaseDesign& design, std::uint64_t seed) {
  model::ModelBundle words = model::load_bundle(folder, torch::kFloat32, torch::kCPU);
  const std::int64_t width = words.is_xl() ? 0 : words.text_encoder->config().hidden_size;
  if (width != design.text_hidden) {
    throw ConfigError("initial_text_encoder", "has a text encoder of another size (" + folder +
                                                  " has a hidden size of " + std::to_string(width) +
                                                  "; allowed: a Stable Diffusion of " +
                                                  std::to_string(design.text_hidden) + ")");
  }
  model::ModelBundle bundle = new_base(design, words.tokenizer, seed);
  bundle.text_encoder = words.text_encoder;
  return bundle;
}

}  // namespace

model::ModelBundle starting_base(const PretrainOptions& options, const BaseDesign& design, const ImagePool& pool) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  if (options.initial_model.empty()) {
    if (options.initial_text_encoder.empty()) return new_base(design, learn_words(pool, design), seed);
    return base_with_words_of(options.initial_text_encoder, design, seed);
  }
  model::ModelBundle bundle = model::load_bundle(options.initial_model, torch::kFloat32, torch::kCPU);
  const std::int64_t side = bundle.resolution();
  if (bundle.is_xl() || side != design.image_size) {
    throw ConfigError("initial_model", "is no model of this design (" + options.initial_model + " draws " +
                                           std::to_string(side) + " px; allowed: a portrait base of " +
                                           std::to_string(design.image_size) + " px)");
  }
  set_base_schedule(bundle);
  return bundle;
}

classifier::ClassifierNetwork starting_classifier(const PretrainOptions& options, const BaseDesign& design) {
  if (!options.initial_classifier.empty()) {
    classifier::ClassifierNetwork network = classifier::load_classifier(options.initial_classifier).network;
    const std::int64_t side = network->design().size;
    if (side == design.image_size) return network;
    throw ConfigError("initial_classifier", "reads images of another size (" + options.initial_classifier + " reads " +
                                                std::to_string(side) +
                                                " px; allowed: " + std::to_string(design.image_size) + " px)");
  }
  classifier::ClassifierNetwork network(classifier::ClassifierDesign::of_size(design.image_size, "design"));
  draw_initial_weights(*network, static_cast<std::uint64_t>(options.seed), kClassifierWeights);
  return network;
}

void copy_weights(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  const auto values = from.named_parameters();
  for (auto& item : to.named_parameters()) item.value().copy_(values[item.key()]);
}

std::map<std::string, std::string> starting_hashes(const PretrainOptions& options) {
  std::map<std::string, std::string> hashes;
  if (options.vae_decoder_only && options.initial_model.empty()) {
    throw ConfigError("vae_decoder_only", "has no autoencoder whose decoder to train (allowed: with initial_model)");
  }
  if (!options.initial_model.empty()) {
    require_folder("initial_model", options.initial_model);
    hashes["initial_model"] = hash_of_base(options.initial_model);
  }
  if (!options.initial_text_encoder.empty()) {
    require_folder("initial_text_encoder", options.initial_text_encoder);
    hashes["initial_text_encoder"] = hash_of_base(options.initial_text_encoder);
  }
  if (!options.initial_classifier.empty()) {
    require_folder("initial_classifier", options.initial_classifier);
    hashes["initial_judge"] = hash_of_base(options.initial_classifier);  // the name in checkpoints written before
  }
  return hashes;
}

}  // namespace sdtune::train::pretrain
