#include "train/portrait/classifier/classifier_measurement.h"

#include <algorithm>
#include <string>
#include <vector>

#include "train/identity/likeness.h"
#include "train/portrait/classifier/classifier_labels.h"
#include "train/portrait/classifier/landmark_erasure.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::classifier {
namespace {

constexpr double kImpostors = 0.01;
constexpr std::int64_t kRenderedAtOnce = 128;  // images rendered and read at once
constexpr double kErasedShare = 0.5;
constexpr std::uint64_t kErasureSeed = 1;

struct Reads {
  Labels labels;
  torch::Tensor classes;     // [B, kHeadCount]
  torch::Tensor numbers;     // [B, numbers]
  torch::Tensor embeddings;  // [B, kEmbeddingSize]
  torch::Tensor landmarks;   // [B, landmarks, 2]
  torch::Tensor seen;        // [B, landmarks] of images of which half are erased somewhere, and the truth of it
  torch::Tensor truly_seen;
};

Reads read_all(PortraitClassifier& classifier, const std::vector<portrait::Portrait>& portraits,
               const MeasurementOptions& options) {
  std::vector<torch::Tensor> classes, numbers, embeddings, landmarks, seen, truly_seen;
  for (std::size_t first = 0; first < portraits.size(); first += kRenderedAtOnce) {
    const std::size_t last = std::min(portraits.size(), first + kRenderedAtOnce);
    const std::vector<portrait::Portrait> some(portraits.begin() + static_cast<std::ptrdiff_t>(first),
                                               portraits.begin() + static_cast<std::ptrdiff_t>(last));
    const torch::Tensor renders = portrait_images(some, classifier.design().size, options.threads);
    const Reading reading = classifier.read(options.reconstruct ? options.reconstruct(renders) : renders);
    std::vector<torch::Tensor> heads;
    for (std::size_t head = 0; head < kHeadCount; ++head) heads.push_back(reading.classes(static_cast<Head>(head)));
    classes.push_back(torch::stack(heads, 1));
    numbers.push_back(reading.numbers);
    embeddings.push_back(reading.embedding);
    landmarks.push_back(reading.landmarks);
    if (reading.landmarks.numel() == 0) continue;
    const ErasedImages erased = erase_landmarks(renders, labels_of(some), kErasedShare, kErasureSeed, first);
    seen.push_back(
        classifier.read(options.reconstruct ? options.reconstruct(erased.images) : erased.images).landmark_seen);
    truly_seen.push_back(erased.labels.landmarks_seen);
  }
  const auto joined = [](const std::vector<torch::Tensor>& rows) {
    return rows.empty() ? torch::Tensor() : torch::cat(rows);
  };
  return {labels_of(portraits),  torch::cat(classes), torch::cat(numbers), torch::cat(embeddings),
          torch::cat(landmarks), joined(seen),        joined(truly_seen)};
}

void measure_attributes(const Reads& reads, ClassifierFigures& figures) {
  for (std::size_t head = 0; head < kHeadCount; ++head) {
    const torch::Tensor truth = reads.labels.classes.select(1, static_cast<std::int64_t>(head));
    const torch::Tensor right = reads.classes.select(1, static_cast<std::int64_t>(head)).eq(truth);
    const double shown = truth.ne(kHidden).sum().item<double>();
    if (shown > 0) figures.accuracy[std::string(head_infos()[head].name)] = right.sum().item<double>() / shown;
  }
  const std::int64_t numbers = reads.numbers.size(1);
  const torch::Tensor error = (reads.numbers - reads.labels.numbers.narrow(1, 0, numbers)).abs().nanmean(0);
  for (std::int64_t number = 0; number < numbers; ++number) {
    figures.mean_error[std::string(kNumberNames.at(static_cast<std::size_t>(number)))] = error[number].item<double>();
  }
}

void measure_landmarks(const Reads& reads, ClassifierFigures& figures) {
  if (reads.landmarks.numel() == 0) return;
  // A side is two half images.
  const torch::Tensor error = (reads.landmarks - reads.labels.landmarks).norm(2, {2}).mean(0) / 2.0;
  const torch::Tensor right = reads.seen.gt(0.5).eq(reads.truly_seen.gt(0.5)).to(torch::kFloat32).mean(0);
  for (std::int64_t i = 0; i < error.size(0); ++i) {
    const std::string name(portrait::kLandmarkNames.at(static_cast<std::size_t>(i)));
    figures.landmark_error[name] = error[i].item<double>();
    figures.landmark_seen[name] = right[i].item<double>();
  }
}

IdentityFigures identity_figures(const torch::Tensor& same, const torch::Tensor& different) {
  const double threshold = threshold_at(different, kImpostors);
  return {area_under_curve(same, different), threshold, share_accepted(same, threshold)};
}

// embeddings [people * views, D] in that order.
IdentityFigures measure_pairs(const torch::Tensor& embeddings, const torch::Tensor& people) {
  const torch::Tensor likeness = torch::matmul(embeddings, embeddings.t());
  const torch::Tensor same = people.unsqueeze(0).eq(people.unsqueeze(1));
  const torch::Tensor once = torch::ones_like(same).triu(1);  // each pair once, none with itself
  return identity_figures(likeness.masked_select(same.logical_and(once)),
                          likeness.masked_select(same.logical_not().logical_and(once)));
}

IdentityFigures measure_references(const torch::Tensor& embeddings, const MeasurementOptions& options) {
  const torch::Tensor by_person = embeddings.view({options.people, options.views, -1});
  std::vector<torch::Tensor> means;
  for (std::int64_t person = 0; person < options.people; ++person) {
    means.push_back(mean_embedding(by_person[person].narrow(0, 0, options.references)));
  }
  const torch::Tensor fresh = by_person.slice(1, options.references).flatten(0, 1);
  const torch::Tensor likeness = torch::matmul(fresh, torch::stack(means).t());  // [new images, people]
  const torch::Tensor owner = torch::arange(options.people).repeat_interleave(options.views - options.references);
  const torch::Tensor same = owner.unsqueeze(1).eq(torch::arange(options.people).unsqueeze(0));
  return identity_figures(likeness.masked_select(same), likeness.masked_select(same.logical_not()));
}

}  // namespace

ClassifierFigures measure_classifier(PortraitClassifier& classifier, const MeasurementOptions& options) {
  TORCH_CHECK(options.people >= 2 && options.references >= 2 && options.references < options.views,
              "a portrait classifier is measured on at least two people, with views left beside the references");
  std::vector<portrait::Portrait> portraits;
  for (std::int64_t i = 0; i < options.people * options.views; ++i) {
    const auto person = static_cast<std::uint64_t>(i / options.views),
               view = static_cast<std::uint64_t>(i % options.views);
    portraits.push_back(portrait::draw_portrait(portrait::image_seeds(portrait::PortraitSet::kValidation, person, view),
                                                classifier.design().detail));
  }
  const Reads reads = read_all(classifier, portraits, options);
  ClassifierFigures figures;
  figures.people = options.people;
  figures.views = options.views;
  figures.references = options.references;
  measure_attributes(reads, figures);
  measure_landmarks(reads, figures);
  figures.by_pair = measure_pairs(reads.embeddings, reads.labels.people);
  figures.by_references = measure_references(reads.embeddings, options);
  return figures;
}

}  // namespace sdtune::train::classifier
