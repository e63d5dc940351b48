// The ranks that train together, as the few operations that training needs. One process needs no c10d at all.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/stop_flag.h"
#include "model/core/timestamp.h"
#include "train/config/dist_options.h"
#include "train/dist/rank_env.h"

namespace sdtune::train {

// A collective under way. wait() must be called once, and of several in the order of their starts; it throws
// PeerLostError. On a GPU it makes the current stream wait, and not the host.
class PendingReduce {
 public:
  virtual ~PendingReduce() = default;
  virtual void wait() = 0;
};

// What a collective was waited for: by the host on a CPU, by the current stream on a GPU.
struct CollectiveWait {
  model::Timestamp begin, end;
};

// Every rank calls the same operations in the same order. All throw PeerLostError naming the lost rank, its host and
// the step when a peer dies, or does not answer within peer_timeout; none blocks longer (collectives.h). Where a peer
// said why it ends, they throw an Error of its exit code that names it.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual std::int64_t rank() const = 0;
  virtual std::int64_t world_size() const = 0;

  // The sum over all ranks, in place, while the caller continues.
  virtual std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) = 0;
  virtual void broadcast(torch::Tensor tensor, std::int64_t root) = 0;  // in place

  // The sum over all ranks at `root` alone, in place, while the caller continues; what the others then hold in `tensor`
  // is theirs. Between CPUs the summands are added in the order of the ranks, those in half precision in float32.
  virtual std::unique_ptr<PendingReduce> start_reduce_sum(torch::Tensor tensor, std::int64_t root);
  // What `root` holds for all, in place, while the caller continues.
  virtual std::unique_ptr<PendingReduce> start_broadcast(torch::Tensor tensor, std::int64_t root);
  // Everybody's bytes at the first rank, by rank; none elsewhere. mine: uint8 [counts[rank()]] on the CPU; counts: the
  // same on every rank, 0 where nothing comes.
  virtual std::vector<torch::Tensor> gather_bytes(const torch::Tensor& mine, const std::vector<std::int64_t>& counts);

  // Ends when every rank is there. Unlike the others it waits for slow ranks as long as they live (a checkpoint on a
  // slow disk, images): only a rank that has ended, or shown no life for peer_timeout, is lost.
  virtual void barrier() = 0;
  // Everybody's text, by rank; for the stop signal, file lists, errors. Not for bulk data.
  virtual std::vector<std::string> gather_text(const std::string& text) = 0;

  // The step that is under way from here on, for errors: 1-based, 0 before the first.
  virtual void begin_step(std::int64_t) {}
  // Before an optimizer step is queued on a GPU: throws when a peer is known to be lost. Waits for sums of earlier
  // steps only.
  virtual void check_before_update() {}
  // Ends when all sums are over. Before the host reads from a GPU, which may be waiting for a peer.
  virtual void settle() {}

  // Before this rank ends with an error that no restart mends, while the group still is there.
  virtual void say_failure(const Error&) {}

  void all_reduce_sum(torch::Tensor tensor) { start_all_reduce_sum(std::move(tensor))->wait(); }
  bool is_first() const { return rank() == 0; }

  // The waits since the last call, or the newest of them.
  virtual std::vector<CollectiveWait> take_waits() { return {}; }

  // What was asked of the network so far, for tests.
  std::int64_t reduced_bytes() const { return reduced_bytes_; }
  std::int64_t reductions() const { return reductions_; }

 protected:
  void count_reduction(std::int64_t bytes) {
    reduced_bytes_ += bytes;
    ++reductions_;
  }

 private:
  std::int64_t reduced_bytes_ = 0;
  std::int64_t reductions_ = 0;
};

// A run of one process: nothing to wait for, nothing to send.
class SingleProcess final : public ProcessGroup {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t world_size() const override { return 1; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor) override {
    return std::make_unique<NothingPending>();
  }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override {}
  std::vector<std::string> gather_text(const std::string& text) override { return {text}; }

 private:
  struct NothingPending final : PendingReduce {
    void wait() override {}
  };
};

// Meets the other ranks over the store at MASTER_ADDR:MASTER_PORT and joins them by Gloo (CPU) or NCCL (CUDA).
// `configuration` (lines of text) must be the same on every rank. One rank gives a SingleProcess, unless `device` is a
// GPU and SDTUNE_FORCE_NCCL=1 (which proves NCCL on a machine with one GPU). Throws ConfigError where the ranks'
// configurations differ or the port is taken, PeerLostError naming the ranks that did not come within
// options.start_timeout, and StopRequest soon after a request in `stop`.
std::unique_ptr<ProcessGroup> connect_ranks(const RankEnv& env, torch::Device device, const DistOptions& options,
                                            const std::string& configuration, const StopFlag* stop = nullptr);

}  // namespace sdtune::train
