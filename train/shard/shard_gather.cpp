#include "train/shard/shard_gather.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "train/dist/gather_json.h"

namespace sdtune::train {

namespace {

Json declared(const model::NamedTensors& tensors) {
  Json list = Json::array();
  for (const auto& [name, tensor] : tensors) {
    list.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  return list;
}

const torch::Tensor& named(const model::NamedTensors& tensors, const std::string& name) {
  const auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                      [](const auto& entry, const std::string& key) { return entry.first < key; });
  TORCH_CHECK(found != tensors.end() && found->first == name, "shards: this rank has no ", name);
  return found->second;
}

}  // namespace

ShardGather::ShardGather(ProcessGroup& group, model::NamedTensors own, std::int64_t batch_bytes)
    : group_(group), own_(std::move(own)) {
  std::sort(own_.begin(), own_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<std::string, std::pair<std::int64_t, model::DeclaredTensor>> all;
  std::int64_t rank = 0;
  for (const Json& of_rank : gather_json(group, declared(own_))) {
    for (const Json& entry : of_rank) {
      const std::string name = entry.at(0);
      const auto dtype = static_cast<torch::Dtype>(entry.at(1).get<int>());
      all.emplace(name,
                  std::pair{rank, model::DeclaredTensor{name, dtype, entry.at(2).get<std::vector<std::int64_t>>()}});
    }
    ++rank;
  }
  for (auto& [name, entry] : all) {
    owners_.push_back(entry.first);
    tensors_.push_back(std::move(entry.second));
  }
  cut_batches(batch_bytes);
}

std::int64_t ShardGather::bytes_of(std::size_t index) const {
  const std::vector<std::int64_t>& shape = tensors_[index].shape;
  return std::accumulate(shape.begin(), shape.end(), static_cast<std::int64_t>(c10::elementSize(tensors_[index].dtype)),
                         std::multiplies<>());
}

void ShardGather::cut_batches(std::int64_t batch_bytes) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (batches_.empty() || bytes + bytes_of(i) > batch_bytes) {
      batches_.push_back({i, i});
      bytes = 0;
    }
    batches_.back().end = i + 1;
    bytes += bytes_of(i);
  }
}

void ShardGather::exchange(const Batch& batch) {
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(group_.world_size()));
  std::vector<torch::Tensor> mine;
  for (std::size_t i = batch.begin; i < batch.end; ++i) {
    if (owners_[i] == 0) continue;  // it is there already
    counts[static_cast<std::size_t>(owners_[i])] += bytes_of(i);
    if (owners_[i] != group_.rank()) continue;
    const torch::Tensor tensor = named(own_, tensors_[i].name).detach().cpu().contiguous();
    mine.push_back(tensor.reshape({-1}).view(torch::kUInt8));
  }
  group_.barrier();  // the first rank may be writing to a slow disk
  const std::vector<torch::Tensor> bytes =
      group_.gather_bytes(mine.empty() ? torch::empty({0}, torch::kUInt8) : torch::cat(mine), counts);
  arrived_.clear();
  if (!group_.is_first()) return;
  std::vector<std::int64_t> offsets(counts.size());
  for (std::size_t i = batch.begin; i < batch.end; ++i) {
    if (owners_[i] == 0) {
      arrived_.push_back(named(own_, tensors_[i].name).detach());
      continue;
    }
    const auto from = static_cast<std::size_t>(owners_[i]);
    torch::Tensor tensor = torch::empty(tensors_[i].shape, tensors_[i].dtype);
    std::memcpy(tensor.data_ptr(), bytes[from].const_data_ptr<std::uint8_t>() + offsets[from], tensor.nbytes());
    offsets[from] += bytes_of(i);
    arrived_.push_back(std::move(tensor));
  }
}

torch::Tensor ShardGather::read(std::size_t index) {
  while (next_batch_ == 0 || index >= batches_[next_batch_ - 1].end) exchange(batches_.at(next_batch_++));
  return arrived_.at(index - batches_[next_batch_ - 1].begin);
}

void ShardGather::serve() {
  while (next_batch_ < batches_.size()) exchange(batches_[next_batch_++]);
}

std::vector<torch::Tensor> ShardGather::read_all() {
  std::vector<torch::Tensor> all;
  if (!group_.is_first()) {
    serve();
    return all;
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) all.push_back(read(i));
  return all;
}

}  // namespace sdtune::train
