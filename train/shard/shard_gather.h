// Tensors that are shared out among the ranks, one after the other at the first rank, which never holds all of them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "model/weights/safetensors_writer.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

class ShardGather {
 public:
  // own: this rank's tensors; where several ranks have one of a name, the first of them gives it. Every rank makes one
  // at the same time, and then the first one reads and the others serve. batch_bytes: how much arrives at once, at
  // most, unless one tensor is larger.
  static constexpr std::int64_t kBatchBytes = std::int64_t{64} << 20;
  ShardGather(ProcessGroup& group, model::NamedTensors own, std::int64_t batch_bytes = kBatchBytes);

  // All ranks' in the order of their names.
  const std::vector<model::DeclaredTensor>& tensors() const { return tensors_; }

  // The first rank: tensors()[index], on the CPU where another rank has it. Indices come in order, 0 to the last;
  // between them it may take its time, since the others wait as long as it lives. Throws PeerLostError.
  torch::Tensor read(std::size_t index);
  // The others: until the last one is sent. Throws PeerLostError.
  void serve();
  // Every rank at once, for what fits: all tensors in the first rank's memory, in the order of tensors(); none
  // elsewhere.
  std::vector<torch::Tensor> read_all();

 private:
  // tensors_[begin] to tensors_[end - 1] travel together.
  struct Batch {
    std::size_t begin = 0, end = 0;
  };

  std::int64_t bytes_of(std::size_t index) const;
  void cut_batches(std::int64_t batch_bytes);
  // Fills in arrived_, on the first rank.
  void exchange(const Batch& batch);

  ProcessGroup& group_;
  model::NamedTensors own_;  // by name
  std::vector<model::DeclaredTensor> tensors_;
  std::vector<std::int64_t> owners_;
  std::vector<Batch> batches_;
  std::size_t next_batch_ = 0;
  std::vector<torch::Tensor> arrived_;  // of the batch before next_batch_
};

}  // namespace sdtune::train
