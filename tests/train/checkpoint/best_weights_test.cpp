#include "train/checkpoint/best_weights.h"

#include <gtest/gtest.h>

#include "model/files/manifest.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/scratch_folder.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/optim/optimizer.h"

namespace sdtune::train {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultyFileSystem;
using test::ScratchFolder;

std::unique_ptr<Optimizer> make_two_weights() {
  const torch::Tensor first = torch::zeros({3, 2}), second = torch::zeros({5});
  return make_optimizer(
      {{"unet.a", first, torch::zeros_like(first), {}, 0}, {"unet.b", second, torch::zeros({5}), {}, 0}},
      OptimOptions());
}

std::vector<torch::Tensor> weights_of(double value) {
  return {torch::full({3, 2}, value), torch::full({5}, -value)};
}

void write_best_step(FileSystem& files, const fs::path& folder, std::int64_t step) {
  write_best_weights(files, folder, make_two_weights()->parameters(), weights_of(static_cast<double>(step)),
                     {"exam", step});
}

TEST(BestWeights, AreThoseOfTheStepThatIsAskedFor) {
  const ScratchFolder scratch;
  const fs::path folder = scratch.path() / "best";
  const auto optimizer = make_two_weights();
  write_best_step(real_file_system(), folder, 10);
  write_best_step(real_file_system(), folder, 20);
  const std::vector<torch::Tensor> read = read_best_weights(folder, optimizer->parameters(), {"exam", 20});
  ASSERT_EQ(read.size(), 2u);
  EXPECT_TRUE(read[0].equal(weights_of(20)[0]));
  EXPECT_TRUE(read[1].equal(weights_of(20)[1]));
  EXPECT_THROW(read_best_weights(folder, optimizer->parameters(), {"exam", 10}), CheckpointError);
  EXPECT_THROW(read_best_weights(folder, optimizer->parameters(), {"another exam", 20}), CheckpointError);
  EXPECT_THROW(read_best_weights(scratch.path() / "nowhere", optimizer->parameters(), {"exam", 20}), CheckpointError);
}

TEST(BestWeights, DamageIsFound) {
  const ScratchFolder scratch;
  const fs::path folder = scratch.path() / "best";
  write_best_step(real_file_system(), folder, 10);
  std::string bytes = read_file(folder / kWeightsFile);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch.write("best/weights.safetensors", bytes);
  EXPECT_THROW(read_best_weights(folder, make_two_weights()->parameters(), {"exam", 10}), CheckpointError);
}

#if defined(__linux__)
// A file whose first byte cannot be read, as on a disk with a bad block.
TEST(BestWeights, ThatTheDiskCannotReadAreNone) {
  const ScratchFolder scratch;
  const fs::path folder = scratch.path() / "best";
  write_best_step(real_file_system(), folder, 10);
  fs::remove(folder / kWeightsFile);
  fs::create_symlink("/proc/self/mem", folder / kWeightsFile);
  Manifest manifest = Manifest::read(folder);
  for (ManifestEntry& entry : manifest.files) {
    if (entry.name == kWeightsFile) entry.size = 0;
  }
  manifest.write(real_file_system(), folder);
  EXPECT_THROW(read_best_weights(folder, make_two_weights()->parameters(), {"exam", 10}), CheckpointError);
}
#endif

bool holds_step(const fs::path& folder, std::int64_t step) {
  try {
    return read_best_weights(folder, make_two_weights()->parameters(), {"exam", step}).size() == 2;
  } catch (const CheckpointError&) {
    return false;
  }
}

// The old ones or the new ones, whole.
TEST(BestWeights, SurviveAFailureAtEveryFileOperation) {
  for (std::size_t at = 0;; ++at) {
    const ScratchFolder scratch;
    const fs::path folder = scratch.path() / "best";
    write_best_step(real_file_system(), folder, 10);
    FaultyFileSystem faulty(Fault::kFailOnce, at);
    try {
      write_best_step(faulty, folder, 20);
    } catch (const StorageError&) {
      EXPECT_TRUE(holds_step(folder, 10) || holds_step(folder, 20)) << "operation " << at;
      continue;
    }
    EXPECT_TRUE(holds_step(folder, 20)) << "operation " << at;
    if (faulty.operations() <= at) break;
  }
}

}  // namespace
}  // namespace sdtune::train
