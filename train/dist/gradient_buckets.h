// Gradients in flat memory, in the order in which backward yields them, summed over the ranks while it still runs.
//
// A hook per parameter takes the gradient that autograd has just finished, writes it into the flat bucket (copies in
// the first micro-batch of a step, adds in the others) and lets autograd's tensor go, so nothing is zeroed and no
// gradient is kept twice. In the last micro-batch a bucket whose parameters are all done is all-reduced at once. The
// hooks make the buckets invisible where backward() is called: begin_step, begin_round and finish_step must enclose it.
//
// Where each parameter has an owner, the one rank that updates it (train/shard), a bucket holds parameters of one owner
// and its sum goes to that rank alone. With frees_gradients a rank keeps the gradients of its own parameters only: the
// others have memory from the first of a bucket to when it is sent, and so every micro-batch is summed over the ranks.
//
// A process that trains alone, and sums in the weights' own dtype, needs no flat memory unless asked for: later
// micro-batches are added to what autograd made, which goes when the next step begins.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "train/dist/chunk_gradients.h"
#include "train/dist/overlap_record.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

struct NamedParameter {
  std::string name;
  torch::Tensor weight;  // a leaf that requires grad, dense in any memory format
};

struct BucketOptions {
  std::int64_t bucket_bytes = 25 * 1048576LL;  // a bucket is closed when it holds this much; 128 MiB suits NVLink
  bool float32_gradients = false;              // sum micro-batches and ranks in float32 whatever the weight's dtype
  std::vector<std::int64_t> owners = {};       // by parameter: the rank that gets its sum; empty: all ranks get all
  bool frees_gradients = false;  // of parameters with another owner; asks for owners, and for probe() first
  bool sends_bfloat16 = false;   // what goes between ranks; the sums of micro-batches are not rounded
  bool memory_stays = false;     // gradients lie where they lay in the step before, also of a process alone
};

class GradientBuckets {
 public:
  // `parameters` in the order forward uses them (registration order will do). Installs the hooks; `group` must outlive
  // this object.
  GradientBuckets(std::vector<NamedParameter> parameters, ProcessGroup& group, const BucketOptions& options);
  ~GradientBuckets();  // removes the hooks
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;
  // The gradient of parameters[index]: shape and strides of the weight. Of a process alone its memory is another one in
  // each step, and none before the first; else it is a view into its bucket, whose memory stays. The tensor that this
  // refers to stays the same. It holds the sum over micro-batches and ranks after finish_step(), so each micro-batch's
  // loss must be its share of the whole: its sum divided by the number of samples of the step on all ranks. Zero for a
  // parameter that backward left out. Of a parameter with another owner it is no sum, or has no memory.
  const torch::Tensor& gradient(std::size_t index) const { return gradients_.at(index); }

  void begin_step(std::int64_t rounds);  // before the first backward of a step of so many micro-batches
  // Before each backward, or so many at the same time (alone only). Only in the last round anything is sent.
  void begin_round(std::int64_t chunks = 1);
  // Before a backward of so many forward passes: each brings a recomputed parameter's gradient once more, so a round of
  // more passes than the first step had sends nothing before its end. Any thread may call it.
  void note_forward_passes(std::int64_t count);
  // After the last backward: sends what is left and waits for all. Throws PeerLostError.
  void finish_step();

  bool frees_gradients() const { return options_.frees_gradients; }
  // The backward of one micro-batch, whose gradients go nowhere and take no memory: how often each comes, and when.
  void probe(const std::function<void()>& backward);
  void agree_on_order();  // with frees_gradients, after probe() and before the first step: rank 0's for everybody

  // Of the last step's bytes, the share whose sum over the ranks began before the last fifth of the last backward by
  // this host's clock; 0 in a first step, which learns the order, unset for a rank that trains alone.
  std::optional<double> overlapped_share() const { return overlap_.share(); }

  std::size_t bucket_count() const { return buckets_.size(); }
  std::int64_t gradient_bytes() const;  // what this rank's take now; 0 where they stay in autograd's memory

 private:
  friend class GradientHook;
  struct Bucket {
    std::vector<std::size_t> members;  // indices of parameters
    std::int64_t count = 0;            // numbers, with what fills up between gradients
    torch::TensorOptions memory;       // dtype and device
    std::int64_t owner = kNoOwner;
    torch::Tensor flat;           // what hooks write to; without memory outside of backward where gradients are freed
    torch::Tensor kept;           // where gradients are freed, the owner's: the sum over micro-batches
    torch::Tensor wire;           // what is sent
    bool has_sum = false;         // kept holds micro-batches of this step
    std::size_t unfinished = 0;   // members whose gradient is still to come; not those that never come
    std::uint64_t last_call = 0;  // when its newest gradient came
    bool sent = false;
    std::unique_ptr<PendingReduce> pending;
  };
  struct State {  // of one parameter
    std::size_t bucket = 0;
    torch::Tensor target;       // its part of the bucket's flat
    bool written = false;       // in this step, or this round where each is summed
    bool is_zero = false;       // without buckets: a zero that may stay for the next step
    std::int64_t calls = 0;     // of the hook in this round
    std::int64_t expected = 0;  // calls a round, as the first step had them; 0 = it never came
  };
  static constexpr std::int64_t kNoOwner = -1;

  bool needs_buckets() const;
  torch::Tensor without_memory(std::size_t index) const;
  void take_directly(std::size_t index, const torch::Tensor& incoming);
  void zero_the_missing();
  void assign_buckets();
  void allocate(Bucket& bucket);
  std::vector<torch::Tensor> parts(const Bucket& bucket, const torch::Tensor& flat) const;
  void open(Bucket& bucket);
  void take_gradient(std::size_t index);
  void take_chunks(std::size_t index, const std::vector<torch::Tensor>& gradients);
  void write(std::size_t index, const torch::Tensor& incoming);
  void count(std::size_t index);
  void send_ready();
  void send(std::size_t index);
  void complete(Bucket& bucket);
  void send_the_rest();
  void learn_order();
  bool is_mine(const Bucket& bucket) const { return bucket.owner == kNoOwner || bucket.owner == group_.rank(); }
  // Whether the round that runs is one that goes to the other ranks.
  bool is_sent_round() const { return options_.frees_gradients || round_ == rounds_; }

  std::vector<NamedParameter> parameters_;
  ProcessGroup& group_;
  BucketOptions options_;
  std::vector<torch::Tensor> gradients_;
  std::vector<State> states_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> send_order_;  // rank 0's order of completion in the first step, everywhere
  std::size_t next_to_send_ = 0;
  std::deque<std::size_t> on_their_way_;  // buckets, in the order in which they were sent
  std::unique_ptr<ChunkGradients> chunks_;
  std::mutex counting_;  // chunks share the numbers of a bucket
  std::int64_t rounds_ = 0, round_ = 0;
  std::int64_t passes_ = 1, learned_passes_ = 1;  // of a backward: in this round, and as learned
  std::uint64_t clock_ = 0;                       // hook calls so far
  OverlapRecord overlap_;
  bool order_known_ = false;
  bool is_direct_ = false;  // without buckets
  bool is_probing_ = false;
};

}  // namespace sdtune::train
