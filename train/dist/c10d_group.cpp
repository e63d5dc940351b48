#include "train/dist/c10d_group.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace sdtune::train {

namespace {

constexpr const char* kSumming = "summing over the ranks";
constexpr const char* kBarrier = "waiting for all ranks";
constexpr const char* kGathering = "gathering from the ranks";
constexpr const char* kBroadcast = "broadcasting to the ranks";

}  // namespace

// A reduction on its way.
class C10dGroup::Pending final : public PendingReduce {
 public:
  Pending(Collectives& collectives, Collectives::Work work) : collectives_(collectives), work_(std::move(work)) {}
  void wait() override { collectives_.order(kSumming, work_); }

 private:
  Collectives& collectives_;
  Collectives::Work work_;
};

C10dGroup::C10dGroup(const Place& place, std::unique_ptr<PeerWatch> peers,
                     const std::function<Collectives::Backend()>& make_backend, const CollectiveRules& rules)
    : place_(place), rules_(rules), peers_(std::move(peers)), collectives_(make_backend, *peers_, rules) {}

// What a call holds it must own: it may be given up and go on without us.
Collectives::Work C10dGroup::all_reduce(const char* doing, const torch::Tensor& tensor) {
  return collectives_.start(doing, [tensor, timeout = rules_.timeout](c10d::Backend& backend) {
    c10d::AllreduceOptions options;
    options.timeout = timeout;
    std::vector<torch::Tensor> tensors{tensor};
    return backend.allreduce(tensors, options);
  });
}

std::unique_ptr<PendingReduce> C10dGroup::start_all_reduce_sum(torch::Tensor tensor) {
  count_reduction(static_cast<std::int64_t>(tensor.nbytes()));
  return std::make_unique<Pending>(collectives_, all_reduce(kSumming, tensor));
}

void C10dGroup::broadcast(torch::Tensor tensor, std::int64_t root) {
  const Collectives::Work work =
      collectives_.start(kBroadcast, [tensor, root, timeout = rules_.timeout](c10d::Backend& backend) {
        c10d::BroadcastOptions options;
        options.rootRank = root;
        options.timeout = timeout;
        std::vector<torch::Tensor> tensors{tensor};
        return backend.broadcast(tensors, options);
      });
  collectives_.order(kBroadcast, work);
}

void C10dGroup::barrier() {
  settle();
  peers_->note_progress();
  collectives_.attempt(kBarrier, [&] {
    if (!peers_->wait_for_all(rules_.timeout)) throw std::runtime_error("it ended, or shows no life");
  });
  // The store's rank may end after this, so all must have left the store before.
  const torch::Tensor token = torch::zeros({1}, torch::dtype(torch::kFloat32).device(rules_.device));
  collectives_.finish(kBarrier, all_reduce(kBarrier, token));
}

std::vector<std::string> C10dGroup::gather_text(const std::string& text) {
  const auto length = static_cast<std::int64_t>(text.size());
  const std::vector<torch::Tensor> lengths = all_gather(torch::tensor({length}, torch::kInt64));
  std::int64_t longest = 1;
  for (const torch::Tensor& other : lengths) longest = std::max(longest, other.item<std::int64_t>());
  const torch::Tensor bytes = torch::zeros({longest}, torch::kUInt8);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  std::vector<std::string> texts;
  for (const torch::Tensor& other : all_gather(bytes)) {
    const auto count = static_cast<std::size_t>(lengths[texts.size()].item<std::int64_t>());
    texts.emplace_back(static_cast<const char*>(other.data_ptr()), count);
  }
  return texts;
}

std::vector<torch::Tensor> C10dGroup::all_gather(const torch::Tensor& mine) {
  settle();
  const torch::Tensor input = mine.to(rules_.device);
  std::vector<torch::Tensor> outputs;
  for (std::int64_t i = 0; i < place_.world_size; ++i) outputs.push_back(torch::empty_like(input));
  const Collectives::Work work =
      collectives_.start(kGathering, [input, outputs, timeout = rules_.timeout](c10d::Backend& backend) {
        c10d::AllgatherOptions options;
        options.timeout = timeout;
        std::vector<torch::Tensor> inputs{input};
        std::vector<std::vector<torch::Tensor>> lists{outputs};
        return backend.allgather(lists, inputs, options);
      });
  collectives_.finish(kGathering, work);
  for (torch::Tensor& output : outputs) output = output.cpu();
  return outputs;
}

}  // namespace sdtune::train
