// The trained parameters as the ranks share them out: every rank computes with all weights, and updates its own alone.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "train/dist/process_group.h"
#include "train/optim/optimizer_shard.h"
#include "train/optim/trained_parameter.h"

namespace sdtune::train {

class Shards {
 public:
  // owners: the rank of each parameter; empty: every rank updates all of them. The parameters' gradients are filled in.
  // `group` must outlive this.
  Shards(std::vector<TrainedParameter> parameters, const std::vector<std::int64_t>& owners, ProcessGroup& group);

  bool is_sharded() const { return shard_.has_value(); }
  // All of them, without their `start`.
  const std::vector<TrainedParameter>& parameters() const { return parameters_; }
  // Those that this rank's optimizer updates: indices into parameters().
  const std::vector<std::size_t>& own() const { return own_; }
  // For this rank's optimizer and for the norm of the gradient; null where nothing is shared out.
  const OptimizerShard* optimizer_shard() const { return shard_ ? &*shard_ : nullptr; }

  // After a change of own weights: every rank's for all. Throws PeerLostError. On a GPU the host does not wait.
  void share_weights();

 private:
  // Weights of one owner and dtype that travel together.
  struct Parcel {
    std::int64_t owner = 0;
    std::vector<std::size_t> members;
    std::int64_t count = 0;  // numbers
  };

  void make_parcels(const std::vector<std::int64_t>& owners);
  torch::Tensor pack(const Parcel& parcel) const;
  void unpack(const Parcel& parcel, const torch::Tensor& flat) const;

  std::vector<TrainedParameter> parameters_;
  ProcessGroup& group_;
  std::vector<std::size_t> own_;
  std::optional<OptimizerShard> shard_;
  std::vector<Parcel> parcels_;
};

}  // namespace sdtune::train
