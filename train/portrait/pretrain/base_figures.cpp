#include "train/portrait/pretrain/base_figures.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "train/portrait/classifier/portrait_images.h"

namespace sdtune::train::pretrain {
namespace {

constexpr std::int64_t kBatch = 64;

torch::Tensor reconstructed(model::ModelBundle& bundle, const torch::Tensor& images) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor there = images.to(bundle.device(), bundle.dtype());
  return bundle.vae->decode(bundle.vae->encode(there).mean).to(torch::kCPU, torch::kFloat32);
}

// Mean over the images of -10 log10 of an image's squared error, where white minus black is 1.
Json autoencoder_figures(model::ModelBundle& bundle, const FigureOptions& options) {
  const std::int64_t side = bundle.resolution();
  const std::vector<portrait::Portrait> people = prompted_people(options.renders, portrait::detail_of(side));
  double sum = 0;
  for (std::size_t first = 0; first < people.size(); first += kBatch) {
    const std::size_t last = std::min(people.size(), first + kBatch);
    const std::vector<portrait::Portrait> some(people.begin() + static_cast<std::ptrdiff_t>(first),
                                               people.begin() + static_cast<std::ptrdiff_t>(last));
    const torch::Tensor renders = classifier::portrait_images(some, side, options.measurement.threads);
    const torch::Tensor error = (reconstructed(bundle, renders).clamp(-1.0, 1.0) - renders) / 2.0;
    sum += (error.square().mean({1, 2, 3}).log10() * -10.0).sum().item<double>();
  }
  return {{"pictures", options.renders}, {"psnr_db", sum / static_cast<double>(options.renders)}};
}

Json classifier_figures(model::ModelBundle& bundle, classifier::PortraitClassifier& classifier,
                        classifier::MeasurementOptions options) {
  const classifier::ClassifierFigures renders = classifier::measure_classifier(classifier, options);
  options.reconstruct = [&bundle](const torch::Tensor& images) { return reconstructed(bundle, images); };
  const classifier::ClassifierFigures behind = classifier::measure_classifier(classifier, options);
  return {{"renders", renders.accuracy}, {"reconstructions", behind.accuracy}};
}

Json prompt_figures(model::ModelBundle& bundle, classifier::PortraitClassifier& classifier,
                    const FigureOptions& options) {
  const std::vector<portrait::Portrait> prompted = prompted_people(options.prompts, classifier.design().detail);
  const PromptAccuracy accuracy =
      prompt_accuracy(prompted, classifier.read(generate_prompted(bundle, prompted, options.generation)));
  Json classes = Json::object();
  for (const auto& [head, by_class] : accuracy.by_class) {
    for (const auto& [name, asked] : by_class) {
      classes[head][name] = {{"asked", asked.asked}, {"right", asked.right}, {"share", asked.share()}};
    }
  }
  return {{"pictures", accuracy.images},
          {"steps", options.generation.steps},
          {"guidance_scale", options.generation.guidance_scale},
          {"mean", accuracy.mean},
          {"heads", accuracy.by_head},
          {"classes", classes}};
}

}  // namespace

Json measure_base(model::ModelBundle& bundle, classifier::PortraitClassifier& classifier,
                  const FigureOptions& options) {
  return {{"vae", autoencoder_figures(bundle, options)},
          {"judge", classifier_figures(bundle, classifier, options.measurement)},
          {"prompts", prompt_figures(bundle, classifier, options)}};
}

}  // namespace sdtune::train::pretrain
