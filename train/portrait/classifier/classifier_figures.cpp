#include "train/portrait/classifier/classifier_figures.h"

#include <limits>
#include <utility>

namespace sdtune::train::classifier {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

double required_number(JsonObject& object, const std::string& key) {
  if (!object.has(key)) object.fail(key, "is missing");
  return object.number(key, kAbsent);
}

Json to_json(const IdentityFigures& figures) {
  return Json{{"auc", figures.auc}, {"threshold", figures.threshold}, {"accepted", figures.accepted}};
}

IdentityFigures identity_from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  const IdentityFigures figures{required_number(object, "auc"), required_number(object, "threshold"),
                                required_number(object, "accepted")};
  object.finish();
  return figures;
}

std::map<std::string, double> numbers_by_name(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  std::map<std::string, double> numbers;
  for (const auto& item : json.items()) numbers[item.key()] = required_number(object, item.key());
  return numbers;
}

}  // namespace

Json ClassifierFigures::to_json() const {
  Json json{{"people", people},
            {"views", views},
            {"references", references},
            {"accuracy", accuracy},
            {"mean_error", mean_error},
            {"by_pair", classifier::to_json(by_pair)},
            {"by_references", classifier::to_json(by_references)}};
  if (!landmark_error.empty()) json["landmark_error"] = landmark_error;
  if (!landmark_seen.empty()) json["landmark_seen"] = landmark_seen;
  return json;
}

ClassifierFigures ClassifierFigures::from_json(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  ClassifierFigures figures;
  figures.people = object.integer("people");
  figures.views = object.integer("views");
  figures.references = object.integer("references");
  figures.accuracy = numbers_by_name(object.raw("accuracy"), where + ": accuracy");
  figures.mean_error = numbers_by_name(object.raw("mean_error"), where + ": mean_error");
  for (auto& [key, numbers] :
       {std::pair{"landmark_error", &figures.landmark_error}, std::pair{"landmark_seen", &figures.landmark_seen}}) {
    if (object.has(key)) *numbers = numbers_by_name(object.raw(key), where + ": " + key);
  }
  figures.by_pair = identity_from_json(object.raw("by_pair"), where + ": by_pair");
  figures.by_references = identity_from_json(object.raw("by_references"), where + ": by_references");
  object.finish();
  return figures;
}

}  // namespace sdtune::train::classifier
