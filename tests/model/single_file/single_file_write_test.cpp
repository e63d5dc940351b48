#include "model/single_file/single_file_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/single_file/ldm_file.h"
#include "model/weights/safetensors_file.h"
#include "model/weights/safetensors_writer.h"
#include "model/weights/stored_weights.h"
#include "tests/support/bit_flip_file_system.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_bundle.h"

namespace sdtune::model {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

class SingleFileWrite : public ::testing::Test {
 protected:
  std::int64_t write(FileSystem& files) {
    return write_single_file(files, bundle_, ModelFamily::kSd1, folder() / "m.safetensors", torch::kFloat16);
  }
  fs::path folder() const { return scratch_.path() / "out"; }
  void SetUp() override { scratch_.write("out/m.safetensors", "old"); }

  test::ScratchFolder scratch_;
  ModelBundle bundle_ = test::make_tiny_bundle(scratch_, false);
};

TEST_F(SingleFileWrite, ReplacesTheOldFileOnlyByAWholeOne) {
  test::FaultyFileSystem counter;
  EXPECT_GT(write(counter), 100);
  EXPECT_EQ(files_in(folder()), std::vector<std::string>{"m.safetensors"});
  for (const std::size_t at : counter.milestones(40)) {
    scratch_.write("out/m.safetensors", "old");
    test::FaultyFileSystem files(test::Fault::kFailOnce, at);
    // After the last rename only the sync of the folder can fail: the new file is whole.
    EXPECT_THROW(write(files), StorageError);
    EXPECT_EQ(files_in(folder()), std::vector<std::string>{"m.safetensors"}) << at;
    const bool is_old = read_file(folder() / "m.safetensors") == "old";
    EXPECT_TRUE(is_old || LdmFile(folder() / "m.safetensors").has("model.diffusion_model.out.2.bias")) << at;
  }
}

TEST_F(SingleFileWrite, FindsABitThatTheDiskChanged) {
  test::BitFlipFileSystem files;
  try {
    write(files);
    FAIL() << "the file was taken for right";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("read again"));
  }
  EXPECT_EQ(files_in(folder()), std::vector<std::string>{"m.safetensors"});
  EXPECT_EQ(read_file(folder() / "m.safetensors"), "old");
}

TEST_F(SingleFileWrite, RefusesWhatNoFileCanSay) {
  bundle_.scheduler_config["prediction_type"] = "sample";
  EXPECT_THROW(write(real_file_system()), WeightError);
  EXPECT_EQ(read_file(folder() / "m.safetensors"), "old");
}

TEST_F(SingleFileWrite, SaysOfEveryFamilyThatItsBetasAreRescaled) {
  bundle_.scheduler_config["prediction_type"] = "v_prediction";
  write(real_file_system());
  EXPECT_FALSE(LdmFile(folder() / "m.safetensors").has("ztsnr"));
  bundle_.scheduler_config["rescale_betas_zero_snr"] = true;
  write(real_file_system());
  EXPECT_TRUE(LdmFile(folder() / "m.safetensors").has("ztsnr"));
}

TEST_F(SingleFileWrite, ReplacesWhatIsNoUtf8InTheTitleAlone) {
  const fs::path file = folder() / "caf\xE9.safetensors";
  write_single_file(real_file_system(), bundle_, ModelFamily::kSd1, file, torch::kFloat16);
  ASSERT_TRUE(is_file(file));
  EXPECT_EQ(SafetensorsFile(file).header().metadata.at("modelspec.title"), "caf\xEF\xBF\xBD");
}

TEST(StoredWeights, AreComparedBitByBit) {
  const Linear linear(3, 2);
  NamedTensors stored = {{"weight", linear->weight.detach().clone()}, {"bias", linear->bias.detach().clone()}};
  const auto check = [&] {
    check_stored_weights(*linear, TensorSource::of_tensors("file", stored), KeyFamily::kUNet, torch::kFloat32);
  };
  EXPECT_NO_THROW(check());
  stored[1].second[0] += 1e-6;
  EXPECT_THROW(check(), StorageError);
  stored.pop_back();
  EXPECT_THROW(check(), StorageError);
}

}  // namespace
}  // namespace sdtune::model
