#include "train/identity/face_reader.h"

#include <algorithm>
#include <utility>

#include "model/base/error.h"
#include "model/core/image_tensor.h"
#include "train/identity/identity_prompts.h"
#include "train/identity/model_images.h"
#include "train/identity/text_likelihood.h"

namespace sdtune::train {
namespace {

constexpr std::int64_t kOtherImages = 16;
constexpr std::int64_t kBatch = 8;                    // images generated at once
constexpr std::uint64_t kFirstOtherSeed = 2'000'000;  // apart from those of the evaluations

std::vector<std::string> texts_of(const std::string& class_words) {
  std::vector<std::string> texts;
  for (const IdentityPrompt& prompt : identity_prompts()) texts.push_back(prompt.text(class_words));
  return texts;
}

// The indices of the prompted images, by the class that their prompts name.
std::map<std::string, std::vector<std::int64_t>> prompted_by_class(const std::vector<IdentityImage>& images) {
  std::map<std::string, std::vector<std::int64_t>> places;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i].asked) places[images[i].class_words].push_back(static_cast<std::int64_t>(i));
  }
  return places;
}

}  // namespace

FaceReader::FaceReader(FaceReaderOptions options) : options_(std::move(options)) {}

torch::Tensor FaceReader::embed_one(const torch::Tensor& image) {
  const Image preview = searched_image(model::tensor_to_image(image / 2 + 0.5));
  const std::vector<float> vector = options_.recognizer->find(preview).identity;
  return vector.empty() ? torch::Tensor() : torch::tensor(vector);
}

torch::Tensor FaceReader::embed(const std::vector<torch::Tensor>& photos) {
  std::vector<torch::Tensor> embeddings;
  for (const torch::Tensor& photo : photos) {
    torch::Tensor embedding = embed_one(photo);
    if (embedding.defined()) embeddings.push_back(std::move(embedding));
  }
  if (embeddings.empty()) {
    throw DataError("identity_model", "no face was found in any of the " + std::to_string(photos.size()) + " photos",
                    "another face_model may find them; identity_steps: none trains without identity evaluation");
  }
  return torch::stack(embeddings);
}

torch::Tensor FaceReader::others(const std::string& class_prompt) {
  if (const auto known = others_.find(class_prompt); known != others_.end()) return known->second;
  model::ModelBundle base = options_.load_base();
  const GenerateImages generate =
      model_images(base, {.steps = options_.steps, .stop = options_.stop, .side = kOwnSide});
  std::vector<torch::Tensor> embeddings;
  for (std::int64_t first = 0; first < kOtherImages; first += kBatch) {
    std::vector<std::uint64_t> seeds;
    for (std::int64_t i = first; i < std::min(first + kBatch, kOtherImages); ++i) {
      seeds.push_back(kFirstOtherSeed + static_cast<std::uint64_t>(i));
    }
    const torch::Tensor generated = generate(std::vector<std::string>(seeds.size(), class_prompt), seeds);
    if (!generated.defined()) return torch::zeros({0, 1});
    for (const torch::Tensor& image : generated.unbind()) {
      torch::Tensor embedding = embed_one(image.cpu());
      if (embedding.defined()) embeddings.push_back(std::move(embedding));
    }
  }
  if (embeddings.empty()) {
    throw DataError("identity_model",
                    "no face was found in " + std::to_string(kOtherImages) + " images that the base generated of \"" +
                        class_prompt + "\", so likeness has no zero",
                    "another face_model may find them; identity_steps: none trains without identity evaluation");
  }
  return others_[class_prompt] = torch::stack(embeddings);
}

IdentityReading FaceReader::read(const torch::Tensor& images, const std::vector<IdentityImage>& asked) {
  const auto count = static_cast<std::int64_t>(asked.size());
  IdentityReading reading{{}, torch::zeros({count}, torch::kFloat64), torch::zeros({count}, torch::kFloat64)};
  const torch::Tensor on_cpu = images.cpu();
  std::vector<torch::Tensor> embeddings;
  for (const torch::Tensor& image : on_cpu.unbind()) embeddings.push_back(embed_one(image));
  const auto seen = std::find_if(embeddings.begin(), embeddings.end(), [](const auto& one) { return one.defined(); });
  const std::int64_t width = seen != embeddings.end() ? seen->size(0) : others_.begin()->second.size(1);
  for (torch::Tensor& embedding : embeddings) {
    if (!embedding.defined()) embedding = torch::zeros({width});
  }
  reading.embedding = torch::stack(embeddings);

  model::ModelBundle base = options_.load_base();
  for (const auto& [class_words, places] : prompted_by_class(asked)) {
    const torch::Tensor chosen = on_cpu.index_select(0, torch::tensor(places)).to(base.device());
    const torch::Tensor likeliest = text_errors(base, chosen, texts_of(class_words), {.stop = options_.stop}).argmin(1);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto wanted = static_cast<std::int64_t>(*asked[static_cast<std::size_t>(places[i])].asked);
      reading.asked[places[i]] = 1.0;
      reading.shown[places[i]] = likeliest[static_cast<std::int64_t>(i)].item<std::int64_t>() == wanted ? 1.0 : 0.0;
    }
  }
  return reading;
}

}  // namespace sdtune::train
