#include "model/pipeline/textual_inversion.h"

#include <vector>

#include "model/base/error.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/tensor_text.h"

namespace sdtune::model {
namespace {

constexpr const char* kWebKey = "emb_params";  // A1111, SD 1.x and 2.x
constexpr const char* kPickledKey = "*";       // A1111's .pt files, which sdtune convert --pickle makes safetensors of
constexpr const char* kXlKey = "clip_l";       // and kXlKey2: A1111, SDXL
constexpr const char* kXlKey2 = "clip_g";

// [N, D] in float32; a single vector may be stored as [D].
torch::Tensor vectors_of(const SafetensorsFile& file, const std::string& name, const CLIPTextModel& encoder) {
  const torch::Tensor stored = file.tensor(name);
  const torch::Tensor vectors = stored.dim() == 1 ? stored.unsqueeze(0) : stored;
  const std::int64_t width = encoder->config().hidden_size;
  const std::string where = file.path().string() + ": " + name;
  if (vectors.dim() != 2 || vectors.size(1) != width || !vectors.is_floating_point()) {
    throw WeightError(where,
                      "is not made for this model's text encoder (got " + shape_text(stored.sizes()) +
                          "; allowed: [vectors, " + std::to_string(width) + "])",
                      "SD 1.x has vectors of 768 numbers, SD 2.x of 1024, SDXL clip_l of 768 and clip_g of 1280");
  }
  const std::int64_t room = encoder->config().max_position_embeddings - 2;
  if (vectors.size(0) < 1 || vectors.size(0) > room) {
    throw WeightError(where, "has more vectors than a prompt holds, or none (got " + std::to_string(vectors.size(0)) +
                                 "; allowed: 1.." + std::to_string(room) + ")");
  }
  return vectors.to(torch::kFloat32).clone();
}

[[noreturn]] void refuse_tensors(const SafetensorsFile& file, bool xl) {
  std::string names;
  for (const auto& [name, tensor] : file.header().tensors) {
    if (names.size() > 100) break;
    names.append(names.empty() ? "" : ", ").append(name);
  }
  throw WeightError(file.path().string(),
                    "is no textual inversion for this model (got " + names + "; allowed: " +
                        (xl ? "clip_l and clip_g" : "emb_params, or one tensor named as its token") + ")");
}

// Rows behind those that are there; returns the id of the first one.
std::int64_t append(CLIPTextModel& encoder, const torch::Tensor& vectors) {
  const torch::Tensor& before = encoder->learned_vectors();
  const std::int64_t rows = before.defined() ? before.size(0) : 0;
  encoder->set_learned_vectors(before.defined() ? torch::cat({before, vectors}) : vectors);
  return encoder->config().vocab_size + rows;
}

}  // namespace

TextualInversion read_textual_inversion(const std::filesystem::path& path, const ModelBundle& bundle,
                                        const std::string& token) {
  const SafetensorsFile file(path);
  TextualInversion inversion{token.empty() ? path.stem().string() : token, {}, {}};
  const std::size_t count = file.header().tensors.size();
  if (bundle.is_xl()) {
    if (count != 2 || !file.has(kXlKey) || !file.has(kXlKey2)) refuse_tensors(file, true);
    inversion.vectors = vectors_of(file, kXlKey, bundle.text_encoder);
    inversion.vectors_2 = vectors_of(file, kXlKey2, bundle.text_encoder_2);
    return inversion;
  }
  if (count != 1) refuse_tensors(file, false);
  const std::string& name = file.header().tensors.begin()->first;
  if (token.empty() && name != kWebKey && name != kPickledKey) inversion.token = name;
  if (inversion.token.empty())
    throw WeightError(path.string(), "gives its embedding no name",
                      "give it one: --embedding FILE:TOKEN, or token= in Python");
  inversion.vectors = vectors_of(file, name, bundle.text_encoder);
  return inversion;
}

void add_textual_inversion(ModelBundle& bundle, const TextualInversion& inversion) {
  for (const LearnedToken& known : bundle.learned_tokens) {
    if (known.text != inversion.token) continue;
    throw ConfigError("token", "an embedding of this name is there already (got " + inversion.token + ")",
                      "give it another name");
  }
  bundle.learned_tokens.push_back(
      {inversion.token, append(bundle.text_encoder, inversion.vectors), inversion.vectors.size(0)});
  if (!bundle.is_xl()) return;
  bundle.learned_tokens_2.push_back(
      {inversion.token, append(bundle.text_encoder_2, inversion.vectors_2), inversion.vectors_2.size(0)});
}

void remove_textual_inversions(ModelBundle& bundle) {
  bundle.learned_tokens.clear();
  bundle.learned_tokens_2.clear();
  bundle.text_encoder->set_learned_vectors(torch::Tensor());
  if (bundle.is_xl()) bundle.text_encoder_2->set_learned_vectors(torch::Tensor());
}

}  // namespace sdtune::model
