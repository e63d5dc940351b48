#include "train/portrait/classifier/classifier_labels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <stdexcept>

namespace sdtune::train::classifier {
namespace {

void label_landmarks(const std::vector<portrait::Portrait>& portraits, Labels& labels) {
  if (labels.landmarks.numel() == 0) return;
  auto* places = labels.landmarks.mutable_data_ptr<float>();
  auto* seen = labels.landmarks_seen.mutable_data_ptr<float>();
  for (const portrait::Portrait& portrait : portraits) {
    for (const portrait::LandmarkPlace& place : portrait::landmarks_of(portrait.who, portrait.now)) {
      *places++ = place.x;
      *places++ = -place.y;
      *seen++ = place.seen ? 1.0f : 0.0f;
    }
  }
}

void label_marks(const std::vector<portrait::Portrait>& portraits, Labels& labels) {
  if (labels.mark_places.numel() == 0) return;
  auto* at = labels.mark_places.mutable_data_ptr<float>();
  constexpr float kNowhere = std::numeric_limits<float>::quiet_NaN();
  for (const portrait::Portrait& portrait : portraits) {
    for (std::size_t mark = 0; mark < portrait::kMarkCount; ++mark) {
      const auto places = portrait::mark_places(static_cast<portrait::Mark>(mark), portrait.who, portrait.now);
      for (std::size_t i = 0; i < 4; ++i) {
        const bool is_seen = places && places->at(i).seen;
        *at++ = is_seen ? places->at(i).x : kNowhere;
        *at++ = is_seen ? -places->at(i).y : kNowhere;
      }
    }
  }
}

}  // namespace

Labels Labels::to(torch::Device device) const {
  return {classes.to(device),        numbers.to(device),     landmarks.to(device),
          landmarks_seen.to(device), mark_places.to(device), people.to(device)};
}

Labels labels_of(const std::vector<portrait::Portrait>& portraits) {
  const auto count = static_cast<std::int64_t>(portraits.size());
  const portrait::Detail detail = portraits.empty() ? portrait::Detail::k64 : portraits.front().now.detail;
  const auto other = [detail](const portrait::Portrait& portrait) { return portrait.now.detail != detail; };
  if (std::any_of(portraits.begin(), portraits.end(), other)) throw std::invalid_argument("labels of two details");
  Labels labels{torch::empty({count, static_cast<std::int64_t>(kHeadCount)}, torch::kInt64),
                torch::empty({count, static_cast<std::int64_t>(kNumberNames.size())}, torch::kFloat32),
                torch::empty({count, landmark_count(detail), 2}, torch::kFloat32),
                torch::empty({count, landmark_count(detail)}, torch::kFloat32),
                torch::empty({count, mark_count(detail), 4, 2}, torch::kFloat32),
                torch::empty({count}, torch::kInt64)};
  auto* classes = labels.classes.mutable_data_ptr<std::int64_t>();
  auto* numbers = labels.numbers.mutable_data_ptr<float>();
  auto* people = labels.people.mutable_data_ptr<std::int64_t>();
  std::map<std::uint64_t, std::int64_t> person_of_seed;
  for (const portrait::Portrait& portrait : portraits) {
    for (std::size_t head = 0; head < kHeadCount; ++head) {
      *classes++ = visible_class(static_cast<Head>(head), portrait).value_or(kHidden);
    }
    for (std::size_t number = 0; number < kNumberNames.size(); ++number) {
      *numbers++ = visible_number(number, portrait).value_or(std::numeric_limits<float>::quiet_NaN());
    }
    const auto next = static_cast<std::int64_t>(person_of_seed.size());
    *people++ = person_of_seed.emplace(portrait.seeds.person, next).first->second;
  }
  label_landmarks(portraits, labels);
  label_marks(portraits, labels);
  return labels;
}

}  // namespace sdtune::train::classifier
