#include "train/portrait/evaluate/subject.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/data/photo_folder.h"
#include "train/identity/likeness.h"
#include "train/identity/reference_photos.h"
#include "train/portrait/classifier/portrait_images.h"
#include "train/portrait/renderer/portrait_set.h"

namespace sdtune::train::evaluate {

namespace fs = std::filesystem;

namespace {

// The first versions rendered no other detail than 64, and their labels name none.
portrait::Detail detail_of_label(const Json& label, const std::string& where) {
  const Json detail = label.value("detail", Json("64"));
  const auto& names = portrait::kDetailNames;
  const auto at = std::find_if(names.begin(), names.end(), [&](const auto& name) { return detail == Json(name); });
  if (at == names.end()) {
    throw DataError(where, "has an unknown detail (got " + detail.dump() + "; allowed: \"64\", \"128\")");
  }
  return static_cast<portrait::Detail>(at - names.begin());
}

LabelledSubject subject_of_label(const Json& label, const std::string& where) {
  if (!label.is_object() || !label.contains("person_seed") || !label["person_seed"].is_number_unsigned()) {
    throw DataError(where, "has no person_seed", "render the photos again with `sdtune render`");
  }
  const auto seed = label["person_seed"].get<std::uint64_t>();
  if (seed < portrait::kReservedSeeds || seed - portrait::kReservedSeeds >= portrait::kReservedCount) {
    throw DataError(where,
                    "shows a person who is not reserved for evaluation (person_seed " + std::to_string(seed) + ")",
                    "render one who is: sdtune render --subject N");
  }
  return {seed - portrait::kReservedSeeds, detail_of_label(label, where)};
}

// Photos of a camera would get figures too, which say nothing. Renders that were saved by another program do not say
// what they are, but labels.jsonl does.
void require_renders(const fs::path& folder, const std::vector<Photo>& photos) {
  const auto others =
      std::count_if(photos.begin(), photos.end(), [](const Photo& photo) { return !photo.is_rendered; });
  std::error_code status;
  if (others == 0 || fs::exists(folder / "labels.jsonl", status)) return;
  throw DataError(folder.string(),
                  std::to_string(others) + " of " + std::to_string(photos.size()) +
                      " photos are not renders of sdtune, whose people alone can be measured",
                  "train --identity-model watches photos of a camera");
}

}  // namespace

Subject make_subject(classifier::PortraitClassifier& classifier, std::uint64_t number,
                     const torch::Tensor& references) {
  Subject subject;
  subject.number = number;
  subject.who = portrait::draw_identity(portrait::image_seeds(portrait::PortraitSet::kReserved, number, 0).person);
  subject.detail = classifier.design().detail;
  subject.references = references;
  subject.reading = classifier.read(references);
  subject.mean_embedding = mean_embedding(subject.reading.embedding);
  return subject;
}

torch::Tensor rendered_references(const classifier::ClassifierDesign& design, std::uint64_t number,
                                  std::int64_t count) {
  std::vector<portrait::Portrait> portraits;
  for (std::int64_t view = 0; view < count; ++view) {
    portraits.push_back(portrait::draw_photo(
        portrait::image_seeds(portrait::PortraitSet::kReserved, number, static_cast<std::uint64_t>(view)),
        design.detail));
  }
  return classifier::portrait_images(portraits, design.size, 1);
}

torch::Tensor photo_references(const fs::path& folder, std::int64_t side) {
  ReferencePhotos kept(side);
  const PhotoVisitor visitor{.keep = [&](const Photo& photo, const Image& image) { kept.keep(photo, image); }};
  const PhotoFolder found = scan_photos(folder, "", /*use_captions=*/false, visitor);
  if (!found.bad.empty()) throw DataError(found.bad);
  require_renders(folder, found.photos);
  std::vector<torch::Tensor> images;
  for (const Photo& photo : found.photos) images.push_back(kept.read(photo));
  return torch::stack(images);
}

std::optional<LabelledSubject> labelled_subject(const fs::path& folder) {
  const fs::path path = folder / "labels.jsonl";
  std::error_code status;
  if (!fs::exists(path, status)) return std::nullopt;
  std::optional<LabelledSubject> subject;
  std::istringstream lines(read_file(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = path.string() + ":" + std::to_string(++number);
    const LabelledSubject found = subject_of_label(parse_json(line, where), where);
    if (subject && subject->number != found.number) throw DataError(where, "shows another person than the lines above");
    if (subject && subject->detail != found.detail) throw DataError(where, "is of another detail than the lines above");
    subject = found;
  }
  if (!subject) throw DataError(path.string(), "is empty");
  return subject;
}

void check_detail(const LabelledSubject& subject, portrait::Detail read, const fs::path& folder) {
  if (subject.detail == read) return;
  const std::string given(portrait::name_of(portrait::kDetailNames, subject.detail));
  const std::string wanted(portrait::name_of(portrait::kDetailNames, read));
  throw DataError((folder / "labels.jsonl").string(),
                  "shows people of detail " + given + ", and the classifier reads those of detail " + wanted,
                  "give the base that was trained, or render the photos with --detail " + wanted);
}

}  // namespace sdtune::train::evaluate
