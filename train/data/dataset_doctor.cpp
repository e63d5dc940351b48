#include "train/data/dataset_doctor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "train/data/face_finder.h"
#include "train/data/identity_outliers.h"

namespace sdtune::train {

namespace {

// Photos of one person in different poses differ in 70 signs and more, copies that were scaled, compressed or
// brightened in 15 at most.
constexpr int kDuplicateDistance = 32;
// Sharp photos have 0.07 and more, the same blurred by a Gaussian of 1 % of their longer side 0.045 at most.
constexpr double kLeastSharpness = 0.05;
constexpr double kGreySaturation = 0.01, kColoredSaturation = 0.05;
constexpr std::size_t kFewestForOddOne = 4;
// A second face this small beside the first (by area) is in the background or is none.
constexpr double kSecondFace = 0.2;

class Doctor {
 public:
  Doctor(const std::vector<Photo>& photos, const CropRule& rule) : photos_(photos), rule_(rule) {}

  Diagnosis diagnose(bool crops_faces, const std::string& trouble, std::optional<double> same_from) {
    find_duplicates();
    has_faces_ =
        std::any_of(photos_.begin(), photos_.end(), [](const Photo& photo) { return photo.face || photo.is_rendered; });
    for (const Photo& photo : photos_) {
      check_size(photo);
      if (!photo.analysis) continue;
      check_sharpness(photo);
      check_faces(photo);
      check_crop(photo, crops_faces);
    }
    find_grey_one();
    find_identity_outliers(same_from);
    note_turned();
    note_faces(trouble);
    return std::move(result_);
  }

 private:
  void warn(const Photo& photo, std::string what, std::string hint) {
    result_.warnings.push_back({photo.path.string(), std::move(what), std::move(hint)});
  }

  void find_duplicates() {
    for (std::size_t i = 0; i < photos_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Photo &photo = photos_[i], &earlier = photos_[j];
        // The same bytes were reported when the folder was read.
        if (!photo.analysis || !earlier.analysis || photo.sha256 == earlier.sha256) continue;
        if (model::hash_distance(photo.analysis->signs, earlier.analysis->signs) > kDuplicateDistance) continue;
        warn(photo, "shows nearly the same as " + earlier.path.filename().string(), "keep the better one");
        break;
      }
    }
  }

  void check_size(const Photo& photo) {
    const model::CropPlan plan = plan_crop(photo.width, photo.height, rule_);
    if (plan.resized_width <= photo.width && plan.resized_height <= photo.height) return;
    std::string what = "is smaller than what is trained on (got ";
    what.append(std::to_string(photo.width)).append("x").append(std::to_string(photo.height)).append(" px; needed: ");
    what.append(std::to_string(plan.width)).append("x").append(std::to_string(plan.height)).append(")");
    warn(photo, std::move(what), "it is enlarged and gets soft: take a larger one, or a smaller resolution");
  }

  void check_sharpness(const Photo& photo) {
    if (photo.analysis->signs.sharpness >= kLeastSharpness) return;
    warn(photo, "is blurred", "the model learns the blur: leave it out");
  }

  void check_faces(const Photo& photo) {
    const std::vector<model::ImageBox>& faces = photo.analysis->faces;
    // Where no photo has a face the subject is none to have one.
    if (has_faces_ && photo.analysis->searched && !photo.face && !photo.is_rendered) {
      warn(photo, "no face is found in it", "leave it out if the subject's face is not to be seen, or is turned");
    }
    if (faces.size() < 2) return;
    const double first = faces[0].width * faces[0].height, second = faces[1].width * faces[1].height;
    if (second < kSecondFace * first) return;
    warn(photo, std::to_string(faces.size()) + " faces are found in it",
         "cut the others away, or the model learns them too");
  }

  void check_crop(const Photo& photo, bool crops_faces) {
    if (!photo.face || crops_faces || rule_.random) return;
    const auto is_shown = [&](const model::CropPlan& plan, const model::ImageBox& box) {
      return model::shows(plan, photo.width, photo.height, box);
    };
    // Of a head that is larger than the crop `face` keeps the face alone; where that is too large as well, no more than
    // the middle does.
    const model::ImageBox box = *face_to_show(photo, rule_);
    if (is_shown(plan_crop(photo.width, photo.height, rule_), box)) return;
    if (!is_shown(plan_crop(photo.width, photo.height, rule_, box), box)) return;
    const bool is_whole = box == head_around(*photo.face, photo.width, photo.height);
    warn(photo, "the middle of it cuts the head",
         is_whole ? "crop_style: face keeps the head" : "crop_style: face keeps the face, and no crop all of the head");
  }

  void find_grey_one() {
    if (photos_.size() < kFewestForOddOne) return;
    const auto is_grey = [](const Photo& photo) {
      return photo.analysis && photo.analysis->signs.saturation < kGreySaturation;
    };
    const auto is_colored = [](const Photo& photo) {
      return photo.analysis && photo.analysis->signs.saturation > kColoredSaturation;
    };
    const auto grey = std::count_if(photos_.begin(), photos_.end(), is_grey);
    const auto colored = std::count_if(photos_.begin(), photos_.end(), is_colored);
    if (grey != 1 || colored + 1 < static_cast<std::ptrdiff_t>(photos_.size())) return;
    warn(*std::find_if(photos_.begin(), photos_.end(), is_grey), "is the only one without colours",
         "say it in its caption (\"a black and white photo of ...\"), or leave it out");
  }

  void find_identity_outliers(std::optional<double> same_from) {
    for (const std::size_t i : identity_outliers(photos_, same_from)) {
      warn(photos_[i], "shows another person than the other photos",
           "leave it out, or make it a subject of its own (concepts)");
    }
  }

  void note_turned() {
    std::vector<std::string> names;
    for (const Photo& photo : photos_) {
      if (photo.orientation != 1) names.push_back(photo.path.filename().string());
    }
    if (names.empty()) return;
    result_.notes.push_back(fmt::format("turned upright as the camera noted (EXIF): {}", fmt::join(names, ", ")));
  }

  void note_faces(const std::string& trouble) {
    if (!trouble.empty()) result_.notes.emplace_back("faces were not searched for: ").append(trouble);
    const bool searched = std::any_of(photos_.begin(), photos_.end(),
                                      [](const Photo& photo) { return photo.analysis && photo.analysis->searched; });
    if (searched && !has_faces_)
      result_.notes.emplace_back("no face is found in any photo: so be it if it is no person");
    const auto unseen = std::count_if(photos_.begin(), photos_.end(), [](const Photo& photo) {
      return photo.analysis && photo.analysis->searched && photo.is_rendered && !photo.face;
    });
    if (unseen == 0) return;
    result_.notes.push_back(std::to_string(unseen));
    result_.notes.back().append(" photos are renders of sdtune, whose faces the detector of camera faces misses");
  }

  const std::vector<Photo>& photos_;
  const CropRule& rule_;
  bool has_faces_ = false;
  Diagnosis result_;
};

}  // namespace

Diagnosis diagnose(const std::vector<Photo>& photos, const CropRule& rule, bool crops_faces, const std::string& trouble,
                   std::optional<double> same_from) {
  return Doctor(photos, rule).diagnose(crops_faces, trouble, same_from);
}

std::optional<model::ImageBox> face_to_show(const Photo& photo, const CropRule& rule) {
  if (!photo.face) return std::nullopt;
  const model::ImageBox head = head_around(*photo.face, photo.width, photo.height);
  const model::CropPlan plan = plan_crop(photo.width, photo.height, rule, head);
  return model::shows(plan, photo.width, photo.height, head) ? head : *photo.face;
}

}  // namespace sdtune::train
