#include "model/pipeline/model_survey.h"

#include <memory>
#include <utility>

#include "model/base/json.h"
#include "model/clip/text_encoder.h"
#include "model/core/device.h"
#include "model/files/json_file.h"
#include "model/nn/initial_values.h"
#include "model/pipeline/image_shape.h"
#include "model/unet/unet.h"
#include "model/vae/autoencoder_kl.h"
#include "model/weights/diffusers_folder.h"

namespace sdtune::model {
namespace {

struct Architecture {
  std::shared_ptr<torch::nn::Module> module;  // weights uninitialised: untouched memory costs nothing
  PartKind kind;
};

// Name and class of each part with weights.
std::vector<std::pair<std::string, std::string>> parts_of(const ModelIndex& index) {
  std::vector<std::pair<std::string, std::string>> parts = {
      {"unet", "UNet2DConditionModel"}, {"vae", "AutoencoderKL"}, {"text_encoder", index.text_encoder_class}};
  if (index.is_xl()) parts.emplace_back("text_encoder_2", index.text_encoder_2_class);
  return parts;
}

Architecture make_architecture(const Json& config, const std::string& class_name, const std::string& where) {
  const WithoutInitialValues skip;
  if (class_name == "UNet2DConditionModel") {
    return {std::make_shared<UNet2DConditionModelImpl>(UNetConfig::from_json(config, where)), kUNetPart};
  }
  if (class_name == "AutoencoderKL") {
    return {std::make_shared<AutoencoderKLImpl>(VaeConfig::from_json(config, where)), kVaePart};
  }
  if (class_name == "CLIPTextModel" || class_name == "CLIPTextModelWithProjection") {
    ClipTextConfig text = ClipTextConfig::from_json(config, where);
    text.with_projection = class_name == "CLIPTextModelWithProjection";
    return {std::make_shared<CLIPTextModelImpl>(text), kTextEncoderPart};
  }
  throw WeightError(where, "class " + class_name +
                               " is not supported (allowed: UNet2DConditionModel, AutoencoderKL, CLIPTextModel, "
                               "CLIPTextModelWithProjection)");
}

// The faults of one part's keys, each list in one line.
void add_key_problems(const PartSurvey& part, const std::string& where, std::vector<Problem>& problems) {
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::string more = names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "";
    problems.push_back({where, std::string(what) + " " + names.front() + more, ""});
  };
  add("lacks tensor", part.keys.missing);
  add("holds unexpected tensor", part.keys.unexpected);
  add("has a tensor of another shape:", part.keys.wrong_shape);
  add("has a tensor of a dtype that no weight has:", part.keys.wrong_dtype);
}

std::string text_of(const Json& json, const char* key, const char* fallback) {
  const auto entry = json.find(key);
  return entry != json.end() && entry->is_string() ? entry->get<std::string>() : fallback;
}

std::string prediction_type_of(const std::filesystem::path& folder) {
  return text_of(read_json(folder / "scheduler" / "scheduler_config.json"), "prediction_type", "epsilon");
}

}  // namespace

TensorTotals count_tensors(const TensorSource& source) {
  TensorTotals totals;
  for (const std::string& name : source.names()) {
    const torch::Tensor tensor = source.tensor(name);
    ++totals.tensors;
    totals.parameters += tensor.numel();
    totals.parameters_of[dtype_name(tensor.scalar_type())] += tensor.numel();
  }
  return totals;
}

PartSurvey survey_part(const std::filesystem::path& folder, const std::string& name, const std::string& class_name) {
  PartSurvey part{name, class_name, {}, {}};
  const std::filesystem::path config = folder / name / "config.json";
  const Architecture architecture = make_architecture(read_json(config), class_name, config.string());
  const TensorSource source = TensorSource::of_part(folder / name, architecture.kind.stem);
  part.totals = count_tensors(source);
  part.keys = compare_keys(*architecture.module, source, architecture.kind.family);
  return part;
}

ModelSurvey survey_model(const std::filesystem::path& folder) {
  const ModelIndex index = ModelIndex::read(folder);
  ModelSurvey survey;
  survey.pipeline_class = index.pipeline_class;
  survey.scheduler_class = index.scheduler_class;
  const auto collect = [&survey](auto&& work) {
    try {
      work();
    } catch (const Error& error) {
      survey.problems.insert(survey.problems.end(), error.problems().begin(), error.problems().end());
    }
  };
  for (const auto& [name, class_name] : parts_of(index)) {
    collect([&, part = name, type = class_name] {
      survey.parts.push_back(survey_part(folder, part, type));
      add_key_problems(survey.parts.back(), (folder / part).string(), survey.problems);
    });
  }
  collect([&] { survey.prediction_type = prediction_type_of(folder); });
  try {
    survey.resolution = read_image_shape(folder).resolution;
  } catch (const Error&) {
    survey.resolution = 0;  // the part's own problem says why
  }
  return survey;
}

}  // namespace sdtune::model
