#include "train/dist/c10d_group.h"

#include <ATen/core/grad_mode.h>

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

// A reduction or a broadcast on its way.
class C10dGroup::Pending final : public PendingReduce {
 public:
  Pending(Collectives& collectives, const char* doing, Collectives::Work work)
      : collectives_(collectives), doing_(doing), work_(std::move(work)) {}
  void wait() override { collectives_.order(doing_, work_); }

 private:
  Collectives& collectives_;
  const char* doing_;
  Collectives::Work work_;
};

// Summands on their way to one rank, which adds them up in the order of the ranks: Gloo's own sums have an order that
// depends on the number of ranks and on where in the tensor a number is.
class C10dGroup::PendingSum final : public PendingReduce {
 public:
  // `summands`: one for each rank, of which the one of this rank is `sum`; none where another rank adds them up.
  PendingSum(Collectives& collectives, Collectives::Work work, torch::Tensor sum, std::vector<torch::Tensor> summands)
      : collectives_(collectives), work_(std::move(work)), sum_(std::move(sum)), summands_(std::move(summands)) {}

  void wait() override {
    collectives_.finish(kSumming, work_);
    if (summands_.empty()) return;
    const torch::NoGradGuard no_grad;
    const bool is_half = c10::isReducedFloatingType(sum_.scalar_type());
    torch::Tensor total = is_half ? summands_.front().to(torch::kFloat32) : summands_.front();
    for (std::size_t rank = 1; rank + 1 < summands_.size(); ++rank) total.add_(summands_[rank]);
    torch::add_out(is_half ? total : sum_, total, summands_.back());
    if (is_half) sum_.copy_(total);
    summands_.clear();
  }

 private:
  Collectives& collectives_;
  Collectives::Work work_;
  torch::Tensor sum_;
  std::vector<torch::Tensor> summands_;
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
  return std::make_unique<Pending>(collectives_, kSumming, all_reduce(kSumming, tensor));
}

Collectives::Work C10dGroup::reduce_on_device(const torch::Tensor& tensor, std::int64_t root) {
  return collectives_.start(kSumming, [tensor, root, timeout = rules_.timeout](c10d::Backend& backend) {
    c10d::ReduceOptions options;
    options.rootRank = root;
    options.timeout = timeout;
    std::vector<torch::Tensor> tensors{tensor};
    return backend.reduce(tensors, options);
  });
}

std::unique_ptr<PendingReduce> C10dGroup::start_reduce_sum(torch::Tensor tensor, std::int64_t root) {
  count_reduction(static_cast<std::int64_t>(tensor.nbytes()));
  if (!rules_.device.is_cpu()) return std::make_unique<Pending>(collectives_, kSumming, reduce_on_device(tensor, root));
  const torch::Tensor flat = tensor.view({-1});
  const std::int64_t others = root == place_.rank ? place_.world_size - 1 : 0;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(place_.world_size), others > 0 ? flat.numel() : 0);
  counts.at(static_cast<std::size_t>(place_.rank)) = 0;
  const torch::Tensor gathered = torch::empty({others * flat.numel()}, flat.options());
  const torch::Tensor sent = others > 0 ? flat.slice(0, 0, 0) : flat;
  Collectives::Work work = gather_to(root, kSumming, sent, gathered, std::move(counts));
  std::vector<torch::Tensor> summands;
  if (others > 0) {
    summands = gathered.view({others, flat.numel()}).unbind();
    summands.insert(summands.begin() + root, flat);
  }
  return std::make_unique<PendingSum>(collectives_, std::move(work), flat, std::move(summands));
}

// By Gloo's alltoall, which receives into `output` itself; its gather would receive elsewhere and copy.
Collectives::Work C10dGroup::gather_to(std::int64_t root, const char* doing, const torch::Tensor& input,
                                       const torch::Tensor& output, std::vector<std::int64_t> counts) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(place_.world_size));
  sent.at(static_cast<std::size_t>(root)) = input.numel();
  return collectives_.start(doing, [from = input, to = output, sent, received = std::move(counts),
                                    timeout = rules_.timeout](c10d::Backend& backend) mutable {
    c10d::AllToAllOptions options;
    options.timeout = timeout;
    return backend.alltoall_base(to, from, received, sent, options);
  });
}

Collectives::Work C10dGroup::begin_broadcast(const torch::Tensor& tensor, std::int64_t root) {
  return collectives_.start(kBroadcast, [tensor, root, timeout = rules_.timeout](c10d::Backend& backend) {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeout;
    std::vector<torch::Tensor> tensors{tensor};
    return backend.broadcast(tensors, options);
  });
}

std::unique_ptr<PendingReduce> C10dGroup::start_broadcast(torch::Tensor tensor, std::int64_t root) {
  return std::make_unique<Pending>(collectives_, kBroadcast, begin_broadcast(tensor, root));
}

void C10dGroup::broadcast(torch::Tensor tensor, std::int64_t root) {
  collectives_.order(kBroadcast, begin_broadcast(tensor, root));
}

std::vector<torch::Tensor> C10dGroup::gather_bytes(const torch::Tensor& mine, const std::vector<std::int64_t>& counts) {
  settle();
  std::int64_t total = 0;
  for (const std::int64_t count : counts) total += count;
  const torch::Tensor input = mine.to(rules_.device);
  const torch::Tensor output = torch::empty({is_first() ? total : 0}, input.options());
  std::vector<std::int64_t> received = is_first() ? counts : std::vector<std::int64_t>(counts.size());
  const Collectives::Work work = gather_to(0, kGathering, input, output, std::move(received));
  collectives_.finish(kGathering, work);
  if (!is_first()) return {};
  return output.cpu().split_with_sizes(counts);
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
