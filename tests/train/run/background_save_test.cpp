#include "train/run/background_save.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <future>

#include "model/weights/safetensors_file.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;

// The real file system, whose first file waits until it is let go.
class WaitingFileSystem : public test::FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  std::unique_ptr<OutputFile> create(const fs::path& path) override {
    released_.wait();
    return FaultyFileSystem::create(path);
  }
  void release() { release_.set_value(); }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

class BackgroundSaves : public testing::Test {
 protected:
  BackgroundSaves() {
    optimizer_ = make_optimizer({{"unet.a", weight_, torch::ones_like(weight_), {}, 0}}, OptimOptions());
    fs::create_directories(checkpoints_);
  }

  CheckpointCopy copy_of(std::int64_t step) const {
    RunState state;
    state.step = step;
    return {copy_to_host(checkpoint_content(*optimizer_)), state};
  }
  static torch::Tensor weight_in(const fs::path& checkpoint) {
    return model::SafetensorsFile(checkpoint / kWeightsFile).tensor("unet.a");
  }

  test::ScratchFolder folder_;
  fs::path checkpoints_ = folder_.path() / "checkpoints";
  torch::Tensor weight_ = torch::full({3, 2}, 1.0);
  std::unique_ptr<Optimizer> optimizer_;
};

TEST_F(BackgroundSaves, WritesWhatThereWasWhenItBegan) {
  WaitingFileSystem files;
  CheckpointWriter writer(files, checkpoints_, std::nullopt);
  BackgroundSave save(writer);
  EXPECT_FALSE(save.is_begun());
  save.begin(copy_of(7));
  EXPECT_TRUE(save.is_begun());
  EXPECT_FALSE(save.is_over());
  {
    const torch::NoGradGuard no_grad;
    weight_.fill_(2.0);  // the step that is made meanwhile
  }
  files.release();
  const SavedCheckpoint saved = save.take();
  EXPECT_FALSE(save.is_begun());
  EXPECT_FALSE(save.is_over());
  EXPECT_EQ(saved.step, 7);
  EXPECT_GT(saved.seconds, 0);
  EXPECT_EQ(saved.path, find_checkpoint("latest", checkpoints_).path);
  EXPECT_TRUE(weight_in(saved.path).equal(torch::full({3, 2}, 1.0)));
}

TEST_F(BackgroundSaves, AFailureIsThrownWhenItIsTakenAndTheNextOneMayBegin) {
  test::FaultyFileSystem files(test::Fault::kFailOnce, 3);
  CheckpointWriter writer(files, checkpoints_, std::nullopt);
  BackgroundSave save(writer);
  save.begin(copy_of(1));
  EXPECT_THROW(save.take(), StorageError);
  EXPECT_FALSE(save.is_begun());
  EXPECT_FALSE(find_checkpoint("auto", checkpoints_).path);
  save.begin(copy_of(2));
  EXPECT_EQ(save.take().step, 2);
}

TEST_F(BackgroundSaves, ItsEndWaitsForWhatIsWritten) {
  CheckpointWriter writer(real_file_system(), checkpoints_, std::nullopt);
  {
    BackgroundSave save(writer);
    save.begin(copy_of(3));
  }
  EXPECT_EQ(read_run_state(*find_checkpoint("latest", checkpoints_).path).step, 3);
}

}  // namespace
}  // namespace sdtune::train
