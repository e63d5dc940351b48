#include "train/portrait/classifier/classifier_file.h"

#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "model/files/json_file.h"
#include "model/nn/initial_values.h"
#include "model/weights/load_into.h"
#include "model/weights/safetensors_writer.h"
#include "train/portrait/classifier/classifier_heads.h"

namespace sdtune::train::classifier {
namespace {

constexpr const char* kWeightsFile = "judge.safetensors";
constexpr const char* kInfoFile = "judge.json";
constexpr std::int64_t kFormat = 1;
constexpr const char* kCoarseClassifier = "portrait-judge";
constexpr const char* kFineClassifier = "portrait-judge-128";
constexpr std::int64_t kCoarseSide = 64;  // px, at which the first reads

Json heads_json() {
  Json heads = Json::object();
  for (const HeadInfo& info : head_infos()) {
    heads[std::string(info.name)] = std::vector<std::string>(info.classes.begin(), info.classes.end());
  }
  return heads;
}

std::vector<std::string> numbers_of(const ClassifierDesign& design) {
  return {kNumberNames.begin(), kNumberNames.begin() + number_count(design.detail)};
}

std::vector<std::string> landmarks_of(const ClassifierDesign& design) {
  return {portrait::kLandmarkNames.begin(), portrait::kLandmarkNames.begin() + landmark_count(design.detail)};
}

// The classifier's names have no older spellings, so any family's rules leave them as they are.
constexpr model::KeyFamily kFamily = model::KeyFamily::kUNet;

void require(JsonObject& object, const std::string& key, const Json& only_value) {
  if (!object.has(key)) object.fail(key, "is missing");
  object.require(key, only_value);
}

}  // namespace

void save_classifier(FileSystem& files, const std::filesystem::path& folder, const ClassifierNetwork& network,
                     const ClassifierFigures& figures) {
  files.create_directories(folder);
  model::NamedTensors tensors;
  for (const auto& item : network->named_parameters()) tensors.emplace_back(item.key(), item.value());
  model::write_safetensors(files, folder / kWeightsFile, std::move(tensors), torch::kFloat16);
  Json info{{"format", kFormat},           {"size", network->design().size}, {"features", kFeatures},
            {"embedding", kEmbeddingSize}, {"heads", heads_json()},          {"numbers", numbers_of(network->design())},
            {"figures", figures.to_json()}};
  if (const auto landmarks = landmarks_of(network->design()); !landmarks.empty()) info["landmarks"] = landmarks;
  write_file_atomically(files, folder / kInfoFile, info.dump(2) + "\n");
}

ClassifierDesign stored_design(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kInfoFile;
  const Json info = read_json(path);
  return ClassifierDesign::of_size(JsonObject(info, path.string()).integer("size"), path.string() + ": size");
}

StoredClassifier load_classifier(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kInfoFile;
  const Json info = read_json(path);
  JsonObject object(info, path.string());
  require(object, "format", kFormat);
  const ClassifierDesign design = ClassifierDesign::of_size(object.integer("size"), path.string() + ": size");
  require(object, "features", kFeatures);
  require(object, "embedding", kEmbeddingSize);
  require(object, "heads", heads_json());
  require(object, "numbers", numbers_of(design));
  if (const auto landmarks = landmarks_of(design); !landmarks.empty()) require(object, "landmarks", landmarks);
  ClassifierFigures figures = ClassifierFigures::from_json(object.raw("figures"), path.string() + ": figures");
  object.finish();
  ClassifierNetwork network = nullptr;
  {
    const model::WithoutInitialValues every_weight_is_loaded;
    network = ClassifierNetwork(design);
  }
  model::load_into(*network, model::TensorSource::of_file(folder / kWeightsFile), kFamily);
  network->eval();
  return {network, std::move(figures)};
}

std::filesystem::path find_classifier(const std::string& name, std::int64_t resolution) {
  if (std::filesystem::is_directory(name)) return name;
  const std::string wanted = !name.empty() ? name : resolution > kCoarseSide ? kFineClassifier : kCoarseClassifier;
  if (wanted != kCoarseClassifier && wanted != kFineClassifier) return name;
  const std::filesystem::path found = find_shared_file(std::filesystem::path("models") / wanted);
  return found.empty() ? std::filesystem::path(name) : found;
}

}  // namespace sdtune::train::classifier
