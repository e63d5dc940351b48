#include "train/portrait/classifier/classifier_file.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/files/file_system.h"
#include "model/files/json_file.h"
#include "tests/support/scratch_folder.h"
#include "train/portrait/classifier/portrait_classifier.h"

namespace sdtune::train::classifier {
namespace {

ClassifierFigures some_figures() {
  ClassifierFigures figures;
  figures.people = 3;
  figures.views = 4;
  figures.references = 2;
  figures.accuracy = {{"hat", 0.75}};
  figures.mean_error = {{"skin_tone", 0.125}};
  figures.by_references = {0.5, 0.25, 0.875};
  return figures;
}

class ClassifierFile : public ::testing::Test {
 protected:
  void SetUp() override { save_classifier(real_file_system(), folder(), network_, some_figures()); }
  std::filesystem::path folder() const { return scratch_.path() / "judge"; }
  Json info() const { return read_json(folder() / "judge.json"); }
  void write(const Json& info) { write_file_atomically(real_file_system(), folder() / "judge.json", info.dump()); }
  void expect_refused(const std::string& words) {
    try {
      load_classifier(folder());
      FAIL() << "was loaded";
    } catch (const WeightError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  test::ScratchFolder scratch_;
  ClassifierNetwork network_;
};

TEST_F(ClassifierFile, GivesTheSameReadingBack) {
  PortraitClassifier before(network_, {}), after = PortraitClassifier::load(folder(), torch::kCPU);
  const torch::Tensor images = torch::rand({3, 3, 64, 64}) * 2 - 1;
  const Reading a = before.read(images), b = after.read(images);
  EXPECT_LT((a.embedding - b.embedding).abs().max().item<double>(), 5e-3);  // float16 weights
  EXPECT_LT((a.probabilities - b.probabilities).abs().max().item<double>(), 5e-3);
  PortraitClassifier other(ClassifierNetwork(), {});
  EXPECT_GT((a.embedding - other.read(images).embedding).abs().max().item<double>(), 5e-2);
  EXPECT_EQ(after.figures().to_json(), some_figures().to_json());
}

TEST_F(ClassifierFile, IsSmallEnoughToShip) {
  EXPECT_LE(std::filesystem::file_size(folder() / "judge.safetensors"), 6'000'000u);
}

TEST_F(ClassifierFile, Of128PixelsIsReadAsSuchWithItsLandmarks) {
  const ClassifierNetwork fine(ClassifierDesign::of_size(128, "test"));
  ClassifierFigures figures = some_figures();
  figures.landmark_error = {{"left_eye", 0.0625}};
  figures.landmark_seen = {{"left_eye", 0.5}};
  save_classifier(real_file_system(), folder(), fine, figures);
  EXPECT_EQ(stored_design(folder()).size, 128);
  PortraitClassifier after = PortraitClassifier::load(folder(), torch::kCPU);
  EXPECT_EQ(after.design().detail, portrait::Detail::k128);
  EXPECT_EQ(after.figures().to_json(), figures.to_json());
  const Reading reading = after.read(torch::rand({2, 3, 128, 128}) * 2 - 1);
  EXPECT_EQ(reading.landmarks.sizes(), (torch::IntArrayRef{2, 5, 2}));
  EXPECT_TRUE(reading.landmark_seen.gt(0).logical_and(reading.landmark_seen.lt(1)).all().item<bool>());
  EXPECT_EQ(reading.numbers.size(1), 19);
  Json changed = info();
  changed["landmarks"][0] = "chin";
  write(changed);
  expect_refused("judge.json: landmarks");
  changed = info();
  changed["size"] = 96;
  write(changed);
  expect_refused("judge.json: size");
}

TEST_F(ClassifierFile, IsRefusedWhenItsOutputsMeanSomethingElse) {
  const Json whole = info();
  Json changed = whole;
  changed["heads"]["hat"][1] = "turban";
  write(changed);
  expect_refused("judge.json: heads");
  changed = whole;
  changed.erase("numbers");
  write(changed);
  expect_refused("judge.json: numbers");
}

TEST_F(ClassifierFile, IsRefusedWithoutFiguresOrWeights) {
  Json changed = info();
  changed["figures"]["by_references"].erase("threshold");
  write(changed);
  expect_refused("threshold");
  save_classifier(real_file_system(), folder(), network_, some_figures());
  std::filesystem::remove(folder() / "judge.safetensors");
  expect_refused("judge.safetensors");
  std::filesystem::remove_all(folder());
  expect_refused("judge.json");
}

}  // namespace
}  // namespace sdtune::train::classifier
