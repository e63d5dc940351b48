#include "app/commands/photo_json.h"

#include "app/commands/photo_advice.h"

namespace sdtune::app {
namespace {

Json photo_json(const train::Photo& photo) {
  Json json{{"file", photo.path.string()},      {"width", photo.width},     {"height", photo.height},
            {"orientation", photo.orientation}, {"caption", photo.caption}, {"repeats", photo.repeats}};
  if (!photo.analysis) return json;
  json["sharpness"] = photo.analysis->signs.sharpness;
  json["faces_searched"] = photo.analysis->searched;
  json["faces"] = Json::array();
  for (const model::ImageBox& face : photo.analysis->faces) {
    json["faces"].push_back({face.left, face.top, face.width, face.height});
  }
  return json;
}

}  // namespace

Json photo_report_json(const train::PhotoReport& report) {
  Json json;
  json["photos"] = Json::array();
  for (const train::Photo& photo : report.folder.photos) json["photos"].push_back(photo_json(photo));
  json["problems"] = problems_json(report.folder.bad);
  std::vector<Problem> warnings = report.folder.warnings;
  warnings.insert(warnings.end(), report.diagnosis.warnings.begin(), report.diagnosis.warnings.end());
  json["warnings"] = problems_json(warnings);
  json["notes"] = report.diagnosis.notes;
  json["left_out"] = problems_json(report.folder.left_out);
  return json;
}

}  // namespace sdtune::app
