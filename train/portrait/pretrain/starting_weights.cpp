#include "train/portrait/pretrain/starting_weights.h"

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

}  // namespace

model::ModelBundle starting_base(const PretrainOptions& options, const BaseDesign& design, const ImagePool& pool) {
  if (options.initial_model.empty()) {
    return new_base(design, learn_words(pool, design), static_cast<std::uint64_t>(options.seed));
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

classifier::ClassifierNetwork starting_classifier(const PretrainOptions& options) {
  if (!options.initial_classifier.empty()) return classifier::load_classifier(options.initial_classifier).network;
  classifier::ClassifierNetwork network;
  draw_initial_weights(*network, static_cast<std::uint64_t>(options.seed), kClassifierWeights);
  return network;
}

std::map<std::string, std::string> starting_hashes(const PretrainOptions& options) {
  std::map<std::string, std::string> hashes;
  if (!options.initial_model.empty()) {
    require_folder("initial_model", options.initial_model);
    hashes["initial_model"] = hash_of_base(options.initial_model);
  }
  if (!options.initial_classifier.empty()) {
    require_folder("initial_classifier", options.initial_classifier);
    hashes["initial_judge"] = hash_of_base(options.initial_classifier);  // the name in checkpoints written before
  }
  return hashes;
}

}  // namespace sdtune::train::pretrain
