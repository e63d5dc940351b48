// A backend that fails and blocks on command: what the host then does, without a device and without a network.
#include "train/dist/c10d_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

using namespace std::chrono_literals;

enum class Fault { kNone, kFailAtStart, kHangAtStart, kFailAtWait, kHangAtWait };

// Opened at the end of a test, so that no blocked thread outlives it.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

class FakeWork final : public c10d::Work {
 public:
  FakeWork(Fault fault, std::vector<torch::Tensor> tensors) : fault_(fault), tensors_(std::move(tensors)) {
    if (fault != Fault::kHangAtWait) completed_ = true;
    if (fault == Fault::kFailAtWait) exception_ = std::make_exception_ptr(std::runtime_error("connection reset"));
  }
  bool wait(std::chrono::milliseconds) override {
    ADD_FAILURE() << "wait() blocks without looking";
    return true;
  }
  bool isCompleted() override { return Work::isCompleted(); }
  void synchronize() override {}
  void end() { finish(); }

 private:
  Fault fault_;
  std::vector<torch::Tensor> tensors_;  // as long as it lives, as NCCL's
};

// The calls of the group end at once, except the one of `call` that has a fault.
struct Script {
  std::string call;
  Fault fault = Fault::kNone;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::shared_ptr<std::vector<std::string>> calls = std::make_shared<std::vector<std::string>>();
};

class FakeBackend final : public c10d::Backend {
 public:
  explicit FakeBackend(Script script) : Backend(0, 2), script_(std::move(script)) {}

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<torch::Tensor>& tensors,
                                           const c10d::BroadcastOptions&) override {
    return call("broadcast", tensors);
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<torch::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    return call("allreduce", tensors);
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<torch::Tensor>>& outputs,
                                           std::vector<torch::Tensor>& inputs, const c10d::AllgatherOptions&) override {
    for (torch::Tensor& output : outputs[0]) output.copy_(inputs[0]);
    return call("allgather");
  }
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<torch::Tensor>&, const c10d::ReduceOptions&) override {
    return call("reduce");
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(torch::Tensor&, torch::Tensor&, std::vector<int64_t>&,
                                               std::vector<int64_t>&, const c10d::AllToAllOptions&) override {
    return call("alltoall_base");
  }
  void abort() override { script_.gate->open(); }

 private:
  c10::intrusive_ptr<c10d::Work> call(const std::string& name, const std::vector<torch::Tensor>& tensors = {}) {
    const Fault fault = name == script_.call ? script_.fault : Fault::kNone;
    script_.calls->push_back(name);
    if (fault == Fault::kFailAtStart) throw std::runtime_error("no route to host");
    if (fault == Fault::kHangAtStart) script_.gate->pass();
    return c10::make_intrusive<FakeWork>(fault, tensors);
  }

  Script script_;
};

// The other one is rank 1 on host "far".
struct FakePeers final : PeerWatch {
  explicit FakePeers(bool comes = true, std::string gone = "") : comes(comes), who(std::move(gone)) {}
  void note_progress() override {
    if (progress) ++*progress;
  }
  bool wait_for_all(std::chrono::milliseconds) override { return comes; }
  std::string gone(std::chrono::milliseconds) override { return who; }
  std::string find_lost() override { return "rank 1 (far)"; }
  bool comes;
  std::string who;
  std::shared_ptr<std::int64_t> progress;
};

struct Conditions {
  std::chrono::milliseconds timeout{300};
  bool runs_ahead = false;
  torch::Device device = torch::kCPU;
  std::unique_ptr<PeerWatch> peers = std::make_unique<FakePeers>();
};

// What `use` of the group ends with: the error's line, "" for none, or that it does not end. The step is 7.
std::string outcome(const Script& script, Conditions conditions, const std::function<void(ProcessGroup&)>& use) {
  std::future<std::string> end = std::async(std::launch::async, [&]() -> std::string {
    try {
      const CollectiveRules rules{conditions.timeout, conditions.device, conditions.runs_ahead};
      C10dGroup group(
          {0, 2}, std::move(conditions.peers), [&] { return c10::make_intrusive<FakeBackend>(script); }, rules);
      group.begin_step(7);
      use(group);
    } catch (const PeerLostError& error) {
      return error.problems().front().line();
    }
    return "";
  });
  const bool ended = end.wait_for(60s) == std::future_status::ready;
  script.gate->open();
  return ended ? end.get() : "does not end";
}

void use_broadcast(ProcessGroup& group) {
  group.broadcast(torch::ones({3}), 1);
  group.settle();
}
void use_sum(ProcessGroup& group) {
  group.all_reduce_sum(torch::ones({3}));
  group.settle();
}
void use_gather(ProcessGroup& group) {
  group.gather_text("text");
}
void use_barrier(ProcessGroup& group) {
  group.barrier();
}
// ZeRO: gradients go to their owner, weights come from it, and states go to the first rank for a checkpoint.
void use_reduce(ProcessGroup& group) {
  group.start_reduce_sum(torch::ones({3}), 0)->wait();
  group.settle();
}
void use_reduce_on_device(ProcessGroup& group) {
  group.start_reduce_sum(torch::ones({3}, torch::kMeta), 1)->wait();
  group.settle();
}
void use_weights(ProcessGroup& group) {
  group.start_broadcast(torch::ones({3}), 1)->wait();
  group.settle();
}
void use_gather_bytes(ProcessGroup& group) {
  group.gather_bytes(torch::ones({3}, torch::kUInt8), {3, 2});
}

struct Collective {
  const char* call;
  const char* doing;
  void (*use)(ProcessGroup&);
  torch::DeviceType device = torch::kCPU;  // the meta device stands for a GPU, on which the backend adds up
};
const Collective kCollectives[] = {{"allreduce", "summing over the ranks", use_sum},
                                   {"broadcast", "broadcasting to the ranks", use_broadcast},
                                   {"allgather", "gathering from the ranks", use_gather},
                                   {"allreduce", "waiting for all ranks", use_barrier},
                                   {"alltoall_base", "summing over the ranks", use_reduce},
                                   {"reduce", "summing over the ranks", use_reduce_on_device, torch::kMeta},
                                   {"broadcast", "broadcasting to the ranks", use_weights},
                                   {"alltoall_base", "gathering from the ranks", use_gather_bytes}};

class EachCollective : public testing::TestWithParam<std::tuple<Collective, Fault, bool>> {};

TEST_P(EachCollective, EndsWithTheRankTheHostAndTheStep) {
  const auto& [collective, fault, runs_ahead] = GetParam();
  Conditions conditions;
  conditions.runs_ahead = runs_ahead;
  conditions.device = collective.device;
  const std::string line = outcome({collective.call, fault}, std::move(conditions), collective.use);
  EXPECT_THAT(line, testing::StartsWith(std::string("rank 1 (far): was lost at step 7 while ") + collective.doing));
  const bool fails = fault == Fault::kFailAtStart || fault == Fault::kFailAtWait;
  EXPECT_THAT(line, testing::HasSubstr(!fails                         ? "no answer within"
                                       : fault == Fault::kFailAtStart ? "no route to host"
                                                                      : "connection reset"));
}

TEST_P(EachCollective, EndsWithoutAFault) {
  const auto& [collective, fault, runs_ahead] = GetParam();
  Conditions conditions;
  conditions.runs_ahead = runs_ahead;
  conditions.device = collective.device;
  const Script script;
  EXPECT_EQ(outcome(script, std::move(conditions), collective.use), "");
  EXPECT_THAT(*script.calls, testing::Contains(collective.call));
}

INSTANTIATE_TEST_SUITE_P(Collectives, EachCollective,
                         testing::Combine(testing::ValuesIn(kCollectives),
                                          testing::Values(Fault::kFailAtStart, Fault::kHangAtStart, Fault::kFailAtWait,
                                                          Fault::kHangAtWait),
                                          testing::Bool()));

TEST(Collectives, ABarrierThatARankNeverReachesEnds) {
  Conditions conditions;
  conditions.peers = std::make_unique<FakePeers>(false);
  EXPECT_THAT(outcome({}, std::move(conditions), use_barrier),
              testing::StartsWith("rank 1 (far): was lost at step 7 while waiting for all ranks"));
}

TEST(Collectives, APeerKnownToBeGoneEndsTheWaitBeforeTheTimeout) {
  Conditions conditions;
  conditions.timeout = 1h;
  conditions.peers = std::make_unique<FakePeers>(true, "rank 1 (far)");
  EXPECT_THAT(outcome({"allreduce", Fault::kHangAtWait}, std::move(conditions), use_sum),
              testing::HasSubstr("rank 1 (far) has ended, or shows no life"));
}

// By which the others know who is behind: a rank that is blocked inside the call has shown less than one that waits
// for its end.
TEST(Collectives, ACallThatReturnsShowsMoreProgressThanOneThatHangs) {
  const auto shown = [](Fault fault) {
    auto peers = std::make_unique<FakePeers>();
    const auto progress = peers->progress = std::make_shared<std::int64_t>(0);
    Conditions conditions;
    conditions.peers = std::move(peers);
    outcome({"allreduce", fault}, std::move(conditions), use_sum);
    return *progress;
  };
  EXPECT_EQ(shown(Fault::kHangAtWait), shown(Fault::kNone));
  EXPECT_EQ(shown(Fault::kHangAtStart), shown(Fault::kNone) - 1);
  EXPECT_EQ(shown(Fault::kFailAtStart), shown(Fault::kNone) - 1);
}

// A GPU: the sum is on its way while the host goes on.
TEST(Collectives, TheHostWaitsForNoSumOfItsOwnStep) {
  Conditions conditions;
  conditions.runs_ahead = true;
  const std::string line = outcome({"allreduce", Fault::kHangAtWait}, std::move(conditions), [](ProcessGroup& group) {
    group.all_reduce_sum(torch::ones({3}));
    group.check_before_update();
    group.begin_step(8);
    group.all_reduce_sum(torch::ones({3}));
    EXPECT_THROW(group.check_before_update(), PeerLostError);  // that of step 7 must be over
    throw PeerLostError("as", "expected");
  });
  EXPECT_EQ(line, "as: expected");
}

TEST(Collectives, ASumThatFailedIsFoundBeforeTheUpdateOfItsStep) {
  Conditions conditions;
  conditions.runs_ahead = true;
  const std::string line = outcome({"allreduce", Fault::kFailAtWait}, std::move(conditions), [](ProcessGroup& group) {
    group.all_reduce_sum(torch::ones({3}));
    group.check_before_update();
  });
  EXPECT_THAT(line, testing::StartsWith("rank 1 (far): was lost at step 7 while summing over the ranks"));
}

// A step's buckets and parcels would else stay, all of them, until the next step.
TEST(Collectives, OnlyTheNewestSumOfAStepIsHeld) {
  Conditions conditions;
  conditions.runs_ahead = true;
  std::vector<float> numbers(3);
  int freed = 0;
  const std::string line = outcome({}, std::move(conditions), [&](ProcessGroup& group) {
    for (int sum = 0; sum < 4; ++sum) {
      group.start_all_reduce_sum(torch::from_blob(numbers.data(), {3}, [&freed](void*) { ++freed; }))->wait();
      EXPECT_EQ(freed, sum);
    }
    group.begin_step(8);
    group.broadcast(torch::from_blob(numbers.data(), {3}, [&freed](void*) { ++freed; }), 1);
    EXPECT_EQ(freed, 3);  // that of step 7 is still to be looked at
    group.settle();
    EXPECT_EQ(freed, 5);
  });
  EXPECT_EQ(line, "");
}

TEST(Collectives, ErrorsOfThisRankArePassedOn) {
  FakePeers peers;
  Collectives collectives([] { return c10::make_intrusive<FakeBackend>(Script{}); }, peers, {1s});
  EXPECT_THROW(collectives.attempt("testing", [] { throw DataError("photo.png", "cannot be read"); }), DataError);
  EXPECT_THROW(
      collectives.attempt("testing", [] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: 5 bytes"); }),
      c10::Error);
  try {
    collectives.attempt("testing", [] { throw std::runtime_error("lost"); });
    FAIL();
  } catch (const PeerLostError& error) {
    EXPECT_EQ(error.problems().front().what, "was lost before the first step while testing");
  }
}

// As a container with Docker's 64 MiB of /dev/shm answers two ranks: NCCL's reason is not in the first line.
TEST(Collectives, TheReasonOfNcclIsSaid) {
  FakePeers peers;
  Collectives collectives([] { return c10::make_intrusive<FakeBackend>(Script{}); }, peers, {1s});
  const auto hint_of = [&](const std::string& text) {
    try {
      collectives.attempt("testing", [&] { throw std::runtime_error(text); });
    } catch (const PeerLostError& error) {
      return error.problems().front().hint;
    }
    return std::string("no error");
  };
  const std::string first = "NCCL error in: NCCLUtils.cpp:94, unhandled system error, NCCL version 2.28.9";
  const std::string kind = "\nncclSystemError: System call failed.";
  EXPECT_EQ(hint_of(first + kind + "\nLast error:\nError while creating /dev/shm/nccl-1: No space left\nmore"),
            first + ": Error while creating /dev/shm/nccl-1: No space left");
  EXPECT_EQ(hint_of(first + kind + "\nLast error:\n"), first);
  EXPECT_EQ(hint_of(first + kind), first);
}

TEST(Collectives, ABackendThatCannotBeMadeIsALostPeer) {
  FakePeers peers;
  const auto gate = std::make_shared<Gate>();
  const auto make = [gate]() -> Collectives::Backend {
    gate->pass();
    return {};
  };
  EXPECT_THROW(Collectives(make, peers, {300ms}), PeerLostError);
  gate->open();
}

// All hearts beat, and the network is what is wrong.
TEST(Collectives, RanksThatDoNotReachEachOtherAreToldOfTheInterface) {
  FakePeers peers;
  const auto gate = std::make_shared<Gate>();
  const auto hint = [&]() -> std::string {
    try {
      const Collectives collectives(
          [gate]() -> Collectives::Backend {
            gate->pass();
            return {};
          },
          peers, {300ms});
    } catch (const PeerLostError& error) {
      return error.problems().front().hint;
    }
    return "no error";
  }();
  gate->open();
  EXPECT_THAT(hint, testing::StartsWith("no answer within 0 s"));
  EXPECT_THAT(hint, testing::HasSubstr("GLOO_SOCKET_IFNAME"));
}

}  // namespace
}  // namespace sdtune::train
