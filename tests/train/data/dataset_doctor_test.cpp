#include "train/data/dataset_doctor.h"

#include <gmock/gmock.h>

#include "train/data/face_finder.h"

namespace sdtune::train {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// A sharp coloured photo of 1000 x 800 with a face in its middle, unlike every other `number`.
Photo photo(int number) {
  Photo result;
  result.path = "p" + std::to_string(number) + ".jpg";
  result.name = result.path.string();
  result.sha256 = result.name;
  result.width = 1000;
  result.height = 800;
  result.face = model::ImageBox{450, 300, 100, 100};
  PhotoAnalysis analysis;
  analysis.signs.hash[static_cast<std::size_t>(number) % 4] = ~std::uint64_t{0};
  analysis.signs.sharpness = 0.3;
  analysis.signs.saturation = 0.3;
  analysis.searched = true;
  analysis.faces = {*result.face};
  result.analysis = analysis;
  return result;
}

class DatasetDoctor : public testing::Test {
 protected:
  std::vector<Problem> warnings(bool crops_faces = false) { return diagnose(photos_, rule_, crops_faces, "").warnings; }
  std::string only_warning() {
    const std::vector<Problem> found = warnings();
    EXPECT_THAT(found, SizeIs(1));
    return found.empty() ? "" : found[0].line();
  }
  std::vector<Photo> photos_ = {photo(0), photo(1), photo(2), photo(3)};
  CropRule rule_{512, std::nullopt, false};
};

TEST_F(DatasetDoctor, HasNothingToSayOfGoodPhotos) {
  const Diagnosis diagnosis = diagnose(photos_, rule_, false, "");
  EXPECT_THAT(diagnosis.warnings, SizeIs(0));
  EXPECT_THAT(diagnosis.notes, SizeIs(0));
}

TEST_F(DatasetDoctor, NamesANearDuplicate) {
  photos_[2].analysis->signs = photos_[0].analysis->signs;
  photos_[2].analysis->signs.hash[3] ^= 0xFFFF;  // 16 signs differ
  EXPECT_EQ(only_warning(), "p2.jpg: shows nearly the same as p0.jpg; keep the better one");
  photos_[2].analysis->signs.hash[3] ^= 0xFFFFFF0000;  // 40
  EXPECT_THAT(warnings(), SizeIs(0));
}

TEST_F(DatasetDoctor, NamesBlurAndSize) {
  photos_[1].analysis->signs.sharpness = 0.02;
  EXPECT_THAT(only_warning(), HasSubstr("p1.jpg: is blurred"));
  photos_[1] = photo(1);
  photos_[3].height = 511;
  EXPECT_THAT(only_warning(), HasSubstr("is smaller than what is trained on (got 1000x511 px; needed: 512x512)"));
}

TEST_F(DatasetDoctor, MissesFacesOnlyWhereOthersHaveOne) {
  photos_[0].face.reset();
  photos_[0].analysis->faces.clear();
  EXPECT_THAT(only_warning(), HasSubstr("p0.jpg: no face is found in it"));
  photos_[0].is_rendered = true;
  EXPECT_THAT(warnings(), SizeIs(0));
  for (Photo& each : photos_) {
    each.face.reset();
    each.analysis->faces.clear();
    each.is_rendered = false;
  }
  const Diagnosis diagnosis = diagnose(photos_, rule_, false, "");
  EXPECT_THAT(diagnosis.warnings, SizeIs(0));
  EXPECT_THAT(diagnosis.notes, SizeIs(1));
}

TEST_F(DatasetDoctor, CountsFacesOfSomeSize) {
  photos_[2].analysis->faces.push_back({700, 300, 90, 90});
  EXPECT_THAT(only_warning(), HasSubstr("2 faces are found in it"));
  photos_[2].analysis->faces.back() = {700, 300, 20, 20};
  EXPECT_THAT(warnings(), SizeIs(0));
}

TEST_F(DatasetDoctor, SaysWhenTheMiddleCutsTheHead) {
  photos_[1].face = model::ImageBox{40, 300, 120, 120};
  EXPECT_THAT(only_warning(), HasSubstr("crop_style: face keeps the head"));
  EXPECT_THAT(warnings(/*crops_faces=*/true), SizeIs(0));
}

TEST_F(DatasetDoctor, PromisesNoHeadThatIsLargerThanTheCrop) {
  photos_[1].face = model::ImageBox{250, 150, 500, 500};
  EXPECT_THAT(warnings(), SizeIs(0)) << "its head is wider than the crop, and the middle shows all of the face";
  photos_[1].face = model::ImageBox{50, 100, 560, 560};
  EXPECT_THAT(only_warning(), HasSubstr("crop_style: face keeps the face, and no crop all of the head"));
}

TEST_F(DatasetDoctor, FindsTheOnlyGreyOne) {
  photos_[3].analysis->signs.saturation = 0;
  EXPECT_THAT(only_warning(), HasSubstr("p3.jpg: is the only one without colours"));
  photos_[2].analysis->signs.saturation = 0;
  EXPECT_THAT(warnings(), SizeIs(0)) << "two are no odd one";
}

TEST_F(DatasetDoctor, NamesThePhotoOfAnotherPerson) {
  for (Photo& each : photos_) each.analysis->identity = {1.0f, 0.0f};
  EXPECT_THAT(warnings(), SizeIs(0));
  photos_[1].analysis->identity = {0.4f, 0.9165f};
  EXPECT_THAT(only_warning(), HasSubstr("p1.jpg: shows another person than the other photos"));
  photos_[1].analysis->identity = {0.6f, 0.8f};
  EXPECT_THAT(warnings(), SizeIs(0)) << "more than half of what the others have";
  EXPECT_THAT(diagnose(photos_, rule_, false, "", 0.7).warnings, SizeIs(1)) << "the classifier's own threshold";
  photos_[1].analysis->identity = {};
  EXPECT_THAT(warnings(), SizeIs(0)) << "no face, no verdict";
}

TEST_F(DatasetDoctor, NamesNoOutlierWhereThereIsNoMajority) {
  for (Photo& each : photos_) each.analysis->identity = {1.0f, 0.0f};
  photos_[0].analysis->identity = photos_[1].analysis->identity = {0.0f, 1.0f};
  EXPECT_THAT(diagnose(photos_, rule_, false, "", 0.7).warnings, SizeIs(0)) << "two against two";
  photos_[1].subject = 1;
  photos_[1].analysis->identity = {0.0f, 1.0f};
  EXPECT_THAT(diagnose(photos_, rule_, false, "", 0.7).warnings, SizeIs(0)) << "three of a subject are too few";
}

TEST_F(DatasetDoctor, NotesWhatWasTurnedAndWhatWasNotDone) {
  photos_[1].orientation = 6;
  const Diagnosis diagnosis = diagnose(photos_, rule_, false, "sdtune-faces: is not installed");
  EXPECT_THAT(diagnosis.notes, SizeIs(2));
  EXPECT_THAT(diagnosis.notes[0], HasSubstr("p1.jpg"));
  EXPECT_THAT(diagnosis.notes[1], HasSubstr("is not installed"));
}

TEST(FaceToShow, IsTheHeadUnlessItIsTooLarge) {
  const CropRule rule{512, std::nullopt, false};
  Photo one = photo(0);
  EXPECT_EQ(face_to_show(one, rule), head_around(*one.face, 1000, 800));
  one.face = model::ImageBox{100, 150, 600, 600};
  EXPECT_EQ(face_to_show(one, rule), *one.face) << "its head is wider than the crop";
  one.face.reset();
  EXPECT_FALSE(face_to_show(one, rule).has_value());
}

TEST(FaceModels, AreCheckedByName) {
  EXPECT_THROW(face_models("nowhere.xml"), ConfigError);
  EXPECT_THROW(FaceFinder({"nowhere.xml"}), DataError);
}

}  // namespace
}  // namespace sdtune::train
