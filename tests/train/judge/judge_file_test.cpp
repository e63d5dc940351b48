#include "train/judge/judge_file.h"

#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/base/file_system.h"
#include "tests/support/scratch_folder.h"
#include "train/judge/judge.h"

namespace sdtune::train::judge {
namespace {

JudgeFigures some_figures() {
  JudgeFigures figures;
  figures.people = 3;
  figures.views = 4;
  figures.references = 2;
  figures.accuracy = {{"hat", 0.75}};
  figures.mean_error = {{"skin_tone", 0.125}};
  figures.by_references = {0.5, 0.25, 0.875};
  return figures;
}

class JudgeFile : public ::testing::Test {
 protected:
  void SetUp() override { save_judge(real_file_system(), folder(), network_, some_figures()); }
  std::filesystem::path folder() const { return scratch_.path() / "judge"; }
  Json info() const { return read_json(folder() / "judge.json"); }
  void write(const Json& info) { write_file_atomically(real_file_system(), folder() / "judge.json", info.dump()); }
  void expect_refused(const std::string& words) {
    try {
      load_judge(folder());
      FAIL() << "was loaded";
    } catch (const WeightError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  test::ScratchFolder scratch_;
  JudgeNetwork network_;
};

TEST_F(JudgeFile, GivesTheSameReadingBack) {
  Judge before(network_, {}), after = Judge::load(folder(), torch::kCPU);
  const torch::Tensor pictures = torch::rand({3, 3, 64, 64}) * 2 - 1;
  const Reading a = before.read(pictures), b = after.read(pictures);
  EXPECT_LT((a.embedding - b.embedding).abs().max().item<double>(), 5e-3);  // float16 weights
  EXPECT_LT((a.probabilities - b.probabilities).abs().max().item<double>(), 5e-3);
  Judge other(JudgeNetwork(), {});
  EXPECT_GT((a.embedding - other.read(pictures).embedding).abs().max().item<double>(), 5e-2);
  EXPECT_EQ(after.figures().to_json(), some_figures().to_json());
}

TEST_F(JudgeFile, IsSmallEnoughToShip) {
  EXPECT_LE(std::filesystem::file_size(folder() / "judge.safetensors"), 6'000'000u);
}

TEST_F(JudgeFile, IsRefusedWhenItsOutputsMeanSomethingElse) {
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

TEST_F(JudgeFile, IsRefusedWithoutFiguresOrWeights) {
  Json changed = info();
  changed["figures"]["by_references"].erase("threshold");
  write(changed);
  expect_refused("threshold");
  save_judge(real_file_system(), folder(), network_, some_figures());
  std::filesystem::remove(folder() / "judge.safetensors");
  expect_refused("judge.safetensors");
  std::filesystem::remove_all(folder());
  expect_refused("judge.json");
}

}  // namespace
}  // namespace sdtune::train::judge
