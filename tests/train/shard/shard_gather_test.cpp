#include "train/shard/shard_gather.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gloo_ranks.h"

namespace sdtune::train {
namespace {

// Tensor i of all; of every type that states have.
torch::Tensor tensor_at(std::int64_t index) {
  const at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(index));
  const torch::Dtype dtypes[] = {torch::kFloat32, torch::kUInt8, torch::kFloat64};
  const torch::Tensor numbers = torch::randint(0, 200, {index + 1, 3}, generator).to(dtypes[index % 3]);
  return index % 2 == 0 ? numbers : numbers.t();
}

std::string name_of(std::int64_t index) {
  return std::string(1, static_cast<char>('a' + index % 7)) + std::to_string(index);
}

constexpr std::int64_t kTensors = 23;

model::NamedTensors own_tensors(const ProcessGroup& group) {
  model::NamedTensors own;
  for (std::int64_t i = 0; i < kTensors; ++i) {
    if (i % group.world_size() == group.rank()) own.emplace_back(name_of(i), tensor_at(i));
  }
  own.emplace_back("estimate", torch::full({2}, 7.0));  // every rank has it
  return own;
}

TEST(ShardGather, GivesTheFirstRankEveryTensorByName) {
  for (const std::int64_t ranks : {2, 3}) {
    for (const std::int64_t batch_bytes : {std::int64_t{1}, std::int64_t{300}, std::int64_t{1} << 20}) {
      const std::vector<std::string> errors = test::run_ranks(ranks, {}, [&](ProcessGroup& group) {
        ShardGather gather(group, own_tensors(group), batch_bytes);
        if (!group.is_first()) return gather.serve();
        ASSERT_EQ(gather.tensors().size(), static_cast<std::size_t>(kTensors + 1));
        std::map<std::string, torch::Tensor> want = {{"estimate", torch::full({2}, 7.0)}};
        for (std::int64_t i = 0; i < kTensors; ++i) want.emplace(name_of(i), tensor_at(i));
        std::size_t index = 0;
        for (const auto& [name, tensor] : want) {  // in the order of names
          EXPECT_EQ(gather.tensors()[index].name, name);
          EXPECT_EQ(gather.tensors()[index].dtype, tensor.scalar_type());
          EXPECT_TRUE(gather.read(index).equal(tensor)) << name;
          ++index;
        }
      });
      EXPECT_THAT(errors, testing::Each(""));
    }
  }
}

TEST(ShardGather, ReadsAllAtOnceWhereThatIsAskedFor) {
  const std::vector<std::string> errors = test::run_ranks(2, {}, [](ProcessGroup& group) {
    ShardGather gather(group, own_tensors(group), 100);
    const std::vector<torch::Tensor> all = gather.read_all();
    EXPECT_EQ(all.size(), group.is_first() ? static_cast<std::size_t>(kTensors + 1) : 0u);
    ShardGather none(group, {});
    EXPECT_TRUE(none.tensors().empty());
    EXPECT_TRUE(none.read_all().empty());
  });
  EXPECT_THAT(errors, testing::Each(""));
}

// The first rank writes to a slow disk between two tensors, for longer than peer_timeout.
TEST(ShardGather, WaitsForASlowDisk) {
  DistOptions options;
  options.peer_timeout = 1;
  const std::vector<std::string> errors = test::run_ranks(2, options, [](ProcessGroup& group) {
    ShardGather gather(group, own_tensors(group), 1);
    if (!group.is_first()) return gather.serve();
    for (std::size_t i = 0; i < gather.tensors().size(); ++i) {
      if (i == 3) std::this_thread::sleep_for(std::chrono::seconds(3));
      gather.read(i);
    }
  });
  EXPECT_THAT(errors, testing::Each(""));
}

}  // namespace
}  // namespace sdtune::train
