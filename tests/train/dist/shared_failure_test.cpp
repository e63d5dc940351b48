#include "train/dist/shared_failure.h"

#include <gtest/gtest.h>

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>

namespace sdtune::train {
namespace {

// Two ranks, of which the other one says `answer`.
class PairGroup final : public ProcessGroup {
 public:
  explicit PairGroup(std::string answer) : answer_(std::move(answer)) {}
  std::int64_t rank() const override { return 0; }
  std::int64_t world_size() const override { return 2; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor) override { return nullptr; }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override { ++barriers_; }
  std::vector<std::string> gather_text(const std::string& text) override { return {text, answer_}; }
  int barriers() const { return barriers_; }

 private:
  std::string answer_;
  int barriers_ = 0;
};

TEST(SharedFailure, IsUnsetWhereEveryRankIsDone) {
  SingleProcess alone;
  bool ran = false;
  EXPECT_FALSE(run_share(alone, [&] { ran = true; }));
  EXPECT_TRUE(ran);
  PairGroup pair("");
  EXPECT_FALSE(run_share(pair, [] {}));
  EXPECT_EQ(pair.barriers(), 1);
}

TEST(SharedFailure, NamesWhatFailedAndKeepsItsType) {
  SingleProcess alone;
  const auto failure = run_share(alone, [] { throw DataError("sdtune-faces", "has ended", "start it again"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ExitCode::kBadInput);
  EXPECT_EQ(failure->problem.line(), "sdtune-faces: has ended; start it again");
  EXPECT_THROW(failure->rethrow(), DataError);
}

TEST(SharedFailure, CoversMemoryThatRanOut) {
  SingleProcess alone;
  const auto torch_failure =
      run_share(alone, [] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: 5 bytes"); });
  ASSERT_TRUE(torch_failure);
  EXPECT_EQ(torch_failure->code, ExitCode::kOutOfMemory);
  EXPECT_THROW(torch_failure->rethrow(), c10::Error);
  const auto failure = run_share(alone, [] { throw std::bad_alloc(); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ExitCode::kOutOfMemory);
  EXPECT_THROW(failure->rethrow(), std::bad_alloc);
}

// An image that was generated for people to see; training itself watches its own numbers.
TEST(SharedFailure, CoversAnImageThatIsNotFinite) {
  SingleProcess alone;
  const auto failure = run_share(alone, [] { throw NonFiniteError("the image", "holds numbers that are not finite"); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ExitCode::kNonFinite);
  EXPECT_THROW(failure->rethrow(), NonFiniteError);
}

TEST(SharedFailure, IsThatOfAnotherRankToo) {
  PairGroup pair(R"([2,"photo.png","cannot be read","mend it"])");
  const auto failure = run_share(pair, [] {});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->problem.line(), "photo.png: cannot be read; mend it");
  try {
    failure->rethrow();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadInput);
  }
}

TEST(SharedFailure, LetsPassWhatEndsARun) {
  SingleProcess alone;
  EXPECT_THROW(run_share(alone, [] { throw StorageError("disk", "is full"); }), StorageError);
  EXPECT_THROW(run_share(alone, [] { throw PeerLostError("rank 1", "was lost"); }), PeerLostError);
  EXPECT_THROW(run_share(alone, [] { throw std::logic_error("a bug"); }), std::logic_error);
  EXPECT_THROW(run_share(alone, [] { TORCH_CHECK(false, "shapes differ"); }), c10::Error);
}

}  // namespace
}  // namespace sdtune::train
