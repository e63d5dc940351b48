// The inspections of weights: a model folder, one part of it, a safetensors file.
#include <algorithm>
#include <array>
#include <set>

#include "app/inspect/inspect_command.h"
#include "model/base/error.h"
#include "model/files/json_file.h"
#include "model/files/model_note.h"
#include "model/lora/lora_file.h"
#include "model/pipeline/model_survey.h"
#include "model/single_file/prediction_choice.h"
#include "model/weights/tensor_source.h"
#include "train/config/base_defaults.h"

namespace sdtune::app {
namespace {

Json totals_json(const model::TensorTotals& totals) {
  Json json;
  json["tensors"] = totals.tensors;
  json["parameters"] = totals.parameters;
  // One dtype is the rule; of a mixture each gets its count.
  if (totals.parameters_of.size() == 1) {
    json["dtype"] = totals.parameters_of.begin()->first;
  } else {
    json["dtype"] = totals.parameters_of;
  }
  return json;
}

void add_keys(const model::LoadReport& keys, Json& json) {
  json["missing"] = keys.missing;
  json["unexpected"] = keys.unexpected;
  json["wrong_shape"] = keys.wrong_shape;
  json["wrong_dtype"] = keys.wrong_dtype;
}

Json part_json(const model::PartSurvey& part) {
  Json json;
  json["class"] = part.class_name;
  json.update(totals_json(part.totals));
  add_keys(part.keys, json);
  return json;
}

// What a lone file holds, by names that only this kind has.
struct FileKind {
  const char* kind;
  const char* key;  // part of a tensor's name
};

constexpr const char* kSingleFile = "Stable Diffusion in one file (LDM's names)";
constexpr std::array<FileKind, 11> kFileKinds = {{
    {"LoHa (LyCORIS)", ".hada_w1_a"},
    {"LoKr (LyCORIS)", ".lokr_w"},
    {"LoRA (kohya's names)", ".lora_down.weight"},
    {"LoRA (PEFT's names)", ".lora_A."},
    {"LoRA (diffusers' old names)", ".lora_linear_layer."},
    {"LoRA (diffusers' old names)", "lora.down.weight"},  // of an attention processor "to_q_lora.down.weight"
    {kSingleFile, "model.diffusion_model."},
    {"UNet2DConditionModel", "down_blocks.0.resnets.0.time_emb_proj."},
    {"AutoencoderKL", "decoder.mid_block.resnets.0."},
    {"AutoencoderKL (LDM's names)", "decoder.mid.block_1."},
    {"CLIP text encoder", "embeddings.token_embedding.weight"},
}};

std::string kind_of_file(const std::vector<std::string>& names) {
  for (const FileKind& known : kFileKinds) {
    for (const std::string& name : names) {
      if (name.find(known.key) != std::string::npos) return known.kind;
    }
  }
  return "safetensors file of an unknown model";
}

// What the rank is the first side of: a LoRA's down projections, and what LoHa and LoKr have in their place.
constexpr std::array kRankKeys = {"lora_down.weight", "lora_A.",    "lora_linear_layer.down",
                                  "lora.down.weight", ".hada_w1_b", ".lokr_w1_b",
                                  ".lokr_w2_b"};

// Several ranks are all named; a LoKr of whole matrices has none.
std::vector<std::int64_t> lora_ranks(const model::TensorSource& source) {
  std::set<std::int64_t> ranks;
  for (const std::string& name : source.names()) {
    const bool down = std::any_of(kRankKeys.begin(), kRankKeys.end(),
                                  [&](const char* key) { return name.find(key) != std::string::npos; });
    if (down && source.tensor(name).dim() >= 1) ranks.insert(source.tensor(name).size(0));
  }
  return {ranks.begin(), ranks.end()};
}

// Family and prediction type, as far as the header tells; why `convert` would refuse it where it would.
void add_single_file(const std::filesystem::path& path, Json& json) {
  json["problems"] = Json::array();
  try {
    const model::LdmFile file(path);
    const model::ModelFamily family = model::detect_family(file);
    json["family"] = model::family_name(family);
    json["prediction_type"] = model::choose_prediction(file, family, std::nullopt, std::nullopt).type;
  } catch (const WeightError& error) {
    for (const Problem& problem : error.problems()) json["problems"].push_back(problem.line());
  }
}

// The class that a part's config.json names.
std::string class_of_config(const Json& config) {
  if (config.contains("_class_name") && config["_class_name"].is_string()) return config["_class_name"];
  const auto architectures = config.find("architectures");
  const bool named = architectures != config.end() && architectures->is_array() && !architectures->empty();
  return named && architectures->front().is_string() ? architectures->front().get<std::string>() : "";
}

}  // namespace

Json inspect_model_folder(const std::filesystem::path& folder) {
  const model::ModelSurvey survey = model::survey_model(folder);
  Json json;
  json["kind"] = "diffusers model folder";
  json["pipeline"] = survey.pipeline_class;
  const std::string family = train::base_family(folder);
  json["family"] = family.empty() ? "other" : family;
  json["prediction_type"] = survey.prediction_type;
  json["scheduler"] = survey.scheduler_class;
  json["resolution"] = survey.resolution;
  const ModelNote note = read_model_note(folder);
  if (!note.trigger.empty()) json["trigger"] = note.trigger;
  if (note.rendered_people) json["learnt_from"] = "rendered people";
  std::int64_t parameters = 0;
  Json parts = Json::object();
  for (const model::PartSurvey& part : survey.parts) {
    parts[part.name] = part_json(part);
    parameters += part.totals.parameters;
  }
  json["parameters"] = parameters;
  json["components"] = std::move(parts);
  json["problems"] = Json::array();
  for (const Problem& problem : survey.problems) json["problems"].push_back(problem.line());
  return json;
}

Json inspect_lora_folder(const std::filesystem::path& folder) {
  Json json = inspect_safetensors(folder / model::kLoraFile);
  json["kind"] = "LoRA of a run";
  const ModelNote note = read_model_note(folder);
  if (!note.base.empty()) json["base"] = note.base;
  if (!note.trigger.empty()) json["trigger"] = note.trigger;
  return json;
}

Json inspect_part_folder(const std::filesystem::path& folder) {
  const std::string class_name = class_of_config(read_json(folder / "config.json"));
  const std::filesystem::path named = folder.has_filename() ? folder : folder.parent_path();
  Json json;
  json["kind"] = "part of a model";
  json.update(part_json(model::survey_part(named.parent_path(), named.filename().string(), class_name)));
  return json;
}

Json inspect_safetensors(const std::filesystem::path& file) {
  const model::TensorSource source = model::TensorSource::of_file(file);
  Json json;
  json["kind"] = kind_of_file(source.names());
  json.update(totals_json(model::count_tensors(source)));
  if (json["kind"] == kSingleFile) add_single_file(file, json);
  if (const std::vector<std::int64_t> ranks = lora_ranks(source); !ranks.empty()) json["rank"] = ranks;
  const model::SafetensorsFile stored(file);
  if (!stored.header().metadata.empty()) json["metadata"] = stored.header().metadata;
  return json;
}

}  // namespace sdtune::app
