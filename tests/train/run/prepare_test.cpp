// What `prepare` encodes with, which `train` takes for its own.
#include "train/run/prepare.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "model/image/png_write.h"
#include "model/pipeline/bundle.h"
#include "tests/support/no_portrait_readers.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::train {
namespace {

// The switches of cuBLAS and cuDNN while images are encoded. cuDNN's is on by default.
class SwitchReader final : public Observer {
 public:
  void on_phase(const std::string& name, std::int64_t, std::int64_t) override {
    if (name != "encoding images") return;
    seen.push_back(at::globalContext().allowTF32CuDNN());
    seen.push_back(at::globalContext().allowTF32CuBLAS());
  }
  std::vector<int> seen;
};

TEST(Prepare, EncodesWithTheRoundingOfTheRunAndKeepsTheTwoApart) {
  const test::ScratchFolder scratch;
  model::save_bundle(real_file_system(), test::make_tiny_bundle(scratch, false), scratch.path() / "base",
                     torch::kFloat32);
  std::filesystem::create_directories(scratch.path() / "photos");
  for (int photo = 0; photo < 2; ++photo) {
    const Image image{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, static_cast<std::uint8_t>(40 * photo + 9))};
    model::write_png(real_file_system(), scratch.path() / "photos" / (std::to_string(photo) + ".png"), image, {});
  }
  TrainConfig config;
  config.run.base = (scratch.path() / "base").string();
  config.run.output = (scratch.path() / "run").string();
  config.run.device = "cpu";
  config.data.images = (scratch.path() / "photos").string();
  config.data.instance_prompt = "a";
  config.data.trigger_word = "a";
  ASSERT_TRUE(at::globalContext().allowTF32CuDNN()) << "else this test shows nothing";
  const StopFlag stop;
  const auto encoded_anew = [&](bool allowed) {
    config.precision.allow_tf32 = allowed;
    SwitchReader reader;
    const PreparedRun prepared = prepare(config, {&reader}, test::NoPortraitReaders(), stop);
    EXPECT_THAT(reader.seen, testing::AllOf(testing::SizeIs(testing::Ge(2u)), testing::Each(allowed ? 1 : 0)));
    EXPECT_TRUE(at::globalContext().allowTF32CuDNN()) << "given back";
    return testing::PrintToString(prepared.notes).find("\"0 of 3 encoded images and captions") != std::string::npos;
  };
  EXPECT_TRUE(encoded_anew(false));
  EXPECT_TRUE(encoded_anew(true)) << "exact latents are not those of a run that rounds";
  EXPECT_FALSE(encoded_anew(false)) << "and are still there";
  EXPECT_FALSE(encoded_anew(true));
}

}  // namespace
}  // namespace sdtune::train
