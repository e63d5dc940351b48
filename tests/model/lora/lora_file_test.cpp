#include "model/lora/lora_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "model/base/error.h"
#include "model/lora/lora_layers.h"
#include "tests/support/bit_flip_file_system.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;

class LoraFileWrite : public ::testing::Test {
 protected:
  // One layer of rank 2, its `up` all zeros.
  LoraWeights weights(double down) const {
    const LoraLayer entry = lora_layers(bundle_).front();
    LoraMatrices matrices;
    matrices.down = torch::full(entry.layer->down_shape(2), down);
    matrices.up = torch::zeros(entry.layer->up_shape(2));
    matrices.alpha = 2;
    return {{entry.path, matrices}};
  }
  fs::path path() const { return scratch_.path() / "out" / "me.safetensors"; }
  void SetUp() override { scratch_.write("out/me.safetensors", "old"); }

  test::ScratchFolder scratch_;
  ModelBundle bundle_ = test::make_tiny_bundle(scratch_, false);
};

TEST_F(LoraFileWrite, NanIsReadBackAsItWasWritten) {
  for (const LoraStyle style : {LoraStyle::kKohya, LoraStyle::kDiffusers}) {
    write_lora(real_file_system(), path(), bundle_, weights(std::nan("")), style);
    const LoraWeights read = read_lora(path(), bundle_);
    ASSERT_EQ(read.size(), 1u);
    EXPECT_TRUE(read.begin()->second.down.isnan().all().item<bool>());
  }
}

TEST_F(LoraFileWrite, AFileThatWasThereStaysWhereTheNewOneDidNotComeBack) {
  test::BitFlipFileSystem files;
  EXPECT_THROW(write_lora(files, path(), bundle_, weights(1), LoraStyle::kKohya), WeightError);
  EXPECT_EQ(read_file(path()), "old");
  write_lora(real_file_system(), path(), bundle_, weights(1), LoraStyle::kKohya);
  EXPECT_TRUE(read_lora(path(), bundle_).begin()->second.down.eq(1).all().item<bool>());
}

}  // namespace
}  // namespace sdtune::model
