#include "train/data/identity_outliers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace sdtune::train {

namespace {

constexpr std::size_t kFewest = 4;
constexpr double kShareOfUsual = 0.5;  // networks of ArcFace's kind have other people near 0

using Places = std::vector<std::size_t>;

std::map<std::size_t, Places> known_by_subject(const std::vector<Photo>& photos) {
  std::map<std::size_t, Places> known;
  for (std::size_t i = 0; i < photos.size(); ++i) {
    if (photos[i].analysis && !photos[i].analysis->identity.empty()) known[photos[i].subject].push_back(i);
  }
  return known;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double cosine(const Photo& left, const Photo& right) {
  const std::vector<float>&a = left.analysis->identity, &b = right.analysis->identity;
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<double> likeness_to_others(const std::vector<Photo>& photos, const Places& places) {
  std::vector<double> likeness;
  for (const std::size_t i : places) {
    std::vector<double> cosines;
    for (const std::size_t j : places) {
      if (j != i) cosines.push_back(cosine(photos[i], photos[j]));
    }
    likeness.push_back(median(std::move(cosines)));
  }
  return likeness;
}

}  // namespace

std::vector<std::size_t> identity_outliers(const std::vector<Photo>& photos, std::optional<double> same_from) {
  std::vector<std::size_t> found;
  for (const auto& [subject, places] : known_by_subject(photos)) {
    if (places.size() < kFewest) continue;
    const std::vector<double> likeness = likeness_to_others(photos, places);
    const double limit = same_from.value_or(kShareOfUsual * median(likeness));
    std::vector<std::size_t> of_subject;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (likeness[i] < limit) of_subject.push_back(places[i]);
    }
    if (3 * of_subject.size() < places.size()) found.insert(found.end(), of_subject.begin(), of_subject.end());
  }
  return found;
}

}  // namespace sdtune::train
