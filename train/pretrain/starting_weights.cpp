#include "train/pretrain/starting_weights.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "model/base/byte_pair_learner.h"
#include "model/base/error.h"
#include "model/pipeline/bundle.h"
#include "train/judge/judge_file.h"
#include "train/pretrain/initial_weights.h"
#include "train/run/run_identity.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kTokenizerTexts = 20000;
constexpr std::uint64_t kJudgeWeights = 3;  // stream of initial weights, after the base's three parts

// The words of the captions decide the vocabulary; the same pool gives the same one.
ClipTokenizer learn_words(const PicturePool& pool, const BaseDesign& design) {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < kTokenizerTexts; ++i) texts.push_back(pool.portrait(i).caption);
  return learn_tokenizer(texts, design.vocabulary);
}

void require_folder(const std::string& option, const std::string& path) {
  if (std::filesystem::is_directory(path)) return;
  throw ConfigError(option, "is not a folder (got " + path + "; allowed: the folder of a model)");
}

}  // namespace

model::ModelBundle starting_base(const PretrainOptions& options, const BaseDesign& design, const PicturePool& pool) {
  if (options.initial_model.empty()) {
    return new_base(design, learn_words(pool, design), static_cast<std::uint64_t>(options.seed));
  }
  model::ModelBundle bundle = model::load_bundle(options.initial_model, torch::kFloat32, torch::kCPU);
  const std::int64_t side = bundle.unet->config().sample_size * bundle.vae_factor();
  if (bundle.is_xl() || side != design.picture_size) {
    throw ConfigError("initial_model", "is no model of this design (" + options.initial_model + " draws " +
                                           std::to_string(side) + " px; allowed: a portrait base of " +
                                           std::to_string(design.picture_size) + " px)");
  }
  set_base_schedule(bundle);
  return bundle;
}

judge::JudgeNetwork starting_judge(const PretrainOptions& options) {
  if (!options.initial_judge.empty()) return judge::load_judge(options.initial_judge).network;
  judge::JudgeNetwork network;
  draw_initial_weights(*network, static_cast<std::uint64_t>(options.seed), kJudgeWeights);
  return network;
}

std::map<std::string, std::string> starting_hashes(const PretrainOptions& options) {
  std::map<std::string, std::string> hashes;
  for (const auto& [option, folder] :
       {std::pair("initial_model", options.initial_model), std::pair("initial_judge", options.initial_judge)}) {
    if (folder.empty()) continue;
    require_folder(option, folder);
    hashes[option] = hash_of_base(folder);
  }
  return hashes;
}

}  // namespace sdtune::train::pretrain
