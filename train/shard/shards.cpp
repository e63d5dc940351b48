#include "train/shard/shards.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace sdtune::train {

namespace {

constexpr std::int64_t kParcelBytes = std::int64_t{16} << 20;
constexpr std::size_t kMostOnTheirWay = 4;  // parcels at once, each of which takes its memory

}  // namespace

Shards::Shards(std::vector<TrainedParameter> parameters, const std::vector<std::int64_t>& owners, ProcessGroup& group)
    : parameters_(std::move(parameters)), group_(group) {
  TORCH_CHECK(owners.empty() || owners.size() == parameters_.size(), "shards: each parameter has one owner");
  for (TrainedParameter& parameter : parameters_) parameter.start.reset();
  if (owners.empty()) {
    own_.resize(parameters_.size());
    std::iota(own_.begin(), own_.end(), std::size_t{0});
    return;
  }
  OptimizerShard shard;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == group.rank()) own_.push_back(i);
    shard.rate_groups.push_back(parameters_[i].rate_group);
  }
  shard.own = own_;
  shard.total = owners.size();
  shard.sum = [&group](const torch::Tensor& terms) { group.all_reduce_sum(terms); };
  shard_ = std::move(shard);
  make_parcels(owners);
}

// One of each owner after the other, so that all of them send.
void Shards::make_parcels(const std::vector<std::int64_t>& owners) {
  std::map<std::pair<std::int64_t, torch::ScalarType>, std::vector<Parcel>> by_kind;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const torch::Tensor& weight = parameters_[i].weight;
    std::vector<Parcel>& parcels = by_kind[{owners[i], weight.scalar_type()}];
    const std::int64_t full = kParcelBytes / weight.element_size();
    if (parcels.empty() || parcels.back().count >= full) parcels.push_back({owners[i], {}, 0});
    parcels.back().members.push_back(i);
    parcels.back().count += weight.numel();
  }
  std::size_t longest = 0;
  for (const auto& [kind, parcels] : by_kind) longest = std::max(longest, parcels.size());
  for (std::size_t turn = 0; turn < longest; ++turn) {
    for (const auto& [kind, parcels] : by_kind) {
      if (turn < parcels.size()) parcels_.push_back(parcels[turn]);
    }
  }
}

// In the memory order of each weight.
torch::Tensor Shards::pack(const Parcel& parcel) const {
  torch::Tensor flat = torch::empty({parcel.count}, parameters_[parcel.members.front()].weight.detach().options());
  if (parcel.owner != group_.rank()) return flat;
  std::int64_t offset = 0;
  for (const std::size_t index : parcel.members) {
    const torch::Tensor weight = parameters_[index].weight.detach();
    flat.as_strided(weight.sizes(), weight.strides(), offset).copy_(weight);
    offset += weight.numel();
  }
  return flat;
}

void Shards::unpack(const Parcel& parcel, const torch::Tensor& flat) const {
  if (parcel.owner == group_.rank()) return;
  std::int64_t offset = 0;
  for (const std::size_t index : parcel.members) {
    torch::Tensor weight = parameters_[index].weight.detach();
    weight.copy_(flat.as_strided(weight.sizes(), weight.strides(), offset));
    offset += weight.numel();
  }
}

void Shards::share_weights() {
  const torch::NoGradGuard no_grad;
  struct Sent {
    const Parcel* parcel;
    torch::Tensor flat;
    std::unique_ptr<PendingReduce> pending;
  };
  std::deque<Sent> on_their_way;
  const auto receive = [&] {
    on_their_way.front().pending->wait();
    unpack(*on_their_way.front().parcel, on_their_way.front().flat);
    on_their_way.pop_front();
  };
  for (const Parcel& parcel : parcels_) {
    if (on_their_way.size() == kMostOnTheirWay) receive();
    torch::Tensor flat = pack(parcel);
    std::unique_ptr<PendingReduce> pending = group_.start_broadcast(flat, parcel.owner);
    on_their_way.push_back({&parcel, std::move(flat), std::move(pending)});
  }
  while (!on_their_way.empty()) receive();
}

}  // namespace sdtune::train
