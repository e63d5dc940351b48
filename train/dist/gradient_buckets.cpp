#include "train/dist/gradient_buckets.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace sdtune::train {

namespace {

// Gradients begin on cache lines, which vector loads and NCCL like.
constexpr std::int64_t kAlignment = 64;  // numbers

std::int64_t padded(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

// One rank over NCCL is not alone: it sends to itself, which is how a machine with one GPU proves the path.
bool is_alone(const ProcessGroup& group) {
  return dynamic_cast<const SingleProcess*>(&group) != nullptr;
}

}  // namespace

// Called by autograd when a parameter's gradient of one graph is complete.
class GradientHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  GradientHook(GradientBuckets& buckets, std::size_t index) : buckets_(buckets), index_(index) {}
  void operator()(const torch::Tensor&) override { buckets_.take_gradient(index_); }

 private:
  GradientBuckets& buckets_;
  std::size_t index_;
};

GradientBuckets::GradientBuckets(std::vector<NamedParameter> parameters, ProcessGroup& group,
                                 const BucketOptions& options)
    : parameters_(std::move(parameters)), group_(group) {
  gradients_.resize(parameters_.size());
  states_.resize(parameters_.size());
  for (const auto& [name, weight] : parameters_) {
    TORCH_CHECK(weight.is_leaf() && weight.requires_grad() && weight.is_non_overlapping_and_dense(),
                "gradient buckets: ", name, " must be a dense leaf that requires grad");
  }
  is_direct_ = !needs_buckets(options);
  if (is_direct_) {
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      gradients_[index] = torch::empty({0}, parameters_[index].weight.options().requires_grad(false));
      release(index);
    }
  } else {
    assign_buckets(options);
    for (Bucket& bucket : buckets_) allocate(bucket, options);
  }
  send_order_.resize(buckets_.size());
  std::iota(send_order_.begin(), send_order_.end(), std::size_t{0});
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[index].weight,
                                                   std::make_unique<GradientHook>(*this, index));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const NamedParameter& parameter : parameters_) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.weight, nullptr);
  }
}

bool GradientBuckets::needs_buckets(const BucketOptions& options) const {
  if (!is_alone(group_)) return true;
  return options.float32_gradients &&
         std::any_of(parameters_.begin(), parameters_.end(),
                     [](const NamedParameter& parameter) { return parameter.weight.scalar_type() != torch::kFloat32; });
}

// The shape stays, the memory goes: others hold this tensor.
void GradientBuckets::release(std::size_t index) {
  const torch::Tensor& weight = parameters_[index].weight;
  const torch::Tensor without_memory = torch::empty({0}, weight.options().requires_grad(false));
  without_memory.unsafeGetTensorImpl()->set_sizes_and_strides(weight.sizes(), weight.strides());
  gradients_[index].set_data(without_memory);
}

void GradientBuckets::take_directly(std::size_t index, const torch::Tensor& incoming) {
  const torch::Tensor& weight = parameters_[index].weight;
  if (states_[index].written) {
    gradients_[index].add_(incoming);
  } else if (incoming.strides() == weight.strides() && incoming.scalar_type() == weight.scalar_type()) {
    gradients_[index].set_data(incoming.detach());
  } else {
    gradients_[index].set_data(torch::empty_like(weight).copy_(incoming));
  }
  states_[index].is_zero = false;
}

void GradientBuckets::zero_the_missing() {
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    if (states_[index].written || states_[index].is_zero) continue;
    gradients_[index].set_data(torch::zeros_like(parameters_[index].weight));
    states_[index].is_zero = true;
  }
}

// Backward meets parameters last to first, so the last ones share the first bucket.
void GradientBuckets::assign_buckets(const BucketOptions& options) {
  using Kind = std::pair<torch::ScalarType, std::string>;
  std::map<Kind, std::pair<std::size_t, std::int64_t>> open;  // bucket and bytes in it
  for (std::size_t index = parameters_.size(); index-- > 0;) {
    const torch::Tensor& weight = parameters_[index].weight;
    const torch::ScalarType dtype = options.float32_gradients ? torch::kFloat32 : weight.scalar_type();
    const Kind kind{dtype, weight.device().str()};
    auto found = open.find(kind);
    if (found == open.end()) {
      buckets_.emplace_back();
      found = open.emplace(kind, std::pair{buckets_.size() - 1, std::int64_t{0}}).first;
    }
    auto& [bucket, bytes] = found->second;
    buckets_[bucket].members.push_back(index);
    states_[index].bucket = bucket;
    bytes += padded(weight.numel()) * static_cast<std::int64_t>(c10::elementSize(dtype));
    if (bytes >= options.bucket_bytes) open.erase(found);
  }
}

void GradientBuckets::allocate(Bucket& bucket, const BucketOptions& options) {
  std::int64_t total = 0;
  for (const std::size_t index : bucket.members) total += padded(parameters_[index].weight.numel());
  const torch::Tensor& first = parameters_[bucket.members.front()].weight;
  const torch::ScalarType dtype = options.float32_gradients ? torch::kFloat32 : first.scalar_type();
  bucket.flat = torch::zeros({total}, torch::dtype(dtype).device(first.device()));
  std::int64_t offset = 0;
  for (const std::size_t index : bucket.members) {
    const torch::Tensor& weight = parameters_[index].weight;
    gradients_[index] = bucket.flat.as_strided(weight.sizes(), weight.strides(), offset);
    offset += padded(weight.numel());
  }
}

void GradientBuckets::begin_step(std::int64_t rounds) {
  TORCH_CHECK(rounds > 0, "gradient buckets: a step has at least one micro-batch, got ", rounds);
  rounds_ = rounds;
  round_ = 0;
  next_to_send_ = 0;
  for (std::size_t index = 0; index < states_.size(); ++index) {
    states_[index].written = false;
    if (is_direct_ && !states_[index].is_zero) release(index);
  }
  for (Bucket& bucket : buckets_) {
    bucket.sent = false;
    bucket.pending.reset();
  }
  // A gradient that other code left must not be summed into ours.
  for (const NamedParameter& parameter : parameters_) parameter.weight.mutable_grad() = torch::Tensor();
}

void GradientBuckets::begin_round() {
  TORCH_CHECK(round_ < rounds_, "gradient buckets: more micro-batches than the ", rounds_, " of begin_step");
  ++round_;
  for (State& state : states_) state.calls = 0;
  for (Bucket& bucket : buckets_) {
    bucket.unfinished =
        static_cast<std::size_t>(std::count_if(bucket.members.begin(), bucket.members.end(),
                                               [this](std::size_t index) { return states_[index].expected > 0; }));
  }
}

// Under activation recomputation this runs inside a nested backward, and a parameter that several recomputed parts
// share comes several times in a round. So a gradient counts as finished when it came as often as in the first step.
void GradientBuckets::take_gradient(std::size_t index) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& incoming = parameters_[index].weight.mutable_grad();
  if (!incoming.defined()) return;
  State& state = states_[index];
  TORCH_CHECK(round_ > 0, "gradient buckets: backward before begin_step and begin_round");
  if (is_direct_) {
    take_directly(index, std::exchange(incoming, torch::Tensor()));
    state.written = true;
    return;
  }
  Bucket& bucket = buckets_[state.bucket];
  TORCH_CHECK(!bucket.sent, "gradient buckets: ", parameters_[index].name, " came more often than in the first step (",
              state.expected, " times a micro-batch), after it was summed over the ranks");
  if (state.written) {
    gradients_[index].add_(incoming);
  } else {
    gradients_[index].copy_(incoming);
  }
  state.written = true;
  incoming = torch::Tensor();
  ++state.calls;
  bucket.last_call = ++clock_;
  if (!order_known_ || round_ != rounds_ || state.calls != state.expected) return;
  if (--bucket.unfinished == 0) send_ready();
}

// Collectives must be called in the same order everywhere, so a bucket waits for those before it.
void GradientBuckets::send_ready() {
  while (next_to_send_ < send_order_.size() && buckets_[send_order_[next_to_send_]].unfinished == 0) {
    send(buckets_[send_order_[next_to_send_++]]);
  }
}

void GradientBuckets::send(Bucket& bucket) {
  for (const std::size_t index : bucket.members) {
    if (!states_[index].written) gradients_[index].zero_();
  }
  bucket.sent = true;
  if (!is_alone(group_)) bucket.pending = group_.start_all_reduce_sum(bucket.flat);
}

void GradientBuckets::finish_step() {
  TORCH_CHECK(round_ == rounds_, "gradient buckets: ", round_, " micro-batches of ", rounds_, " were run");
  const torch::NoGradGuard no_grad;
  if (is_direct_) return zero_the_missing();
  while (next_to_send_ < send_order_.size()) send(buckets_[send_order_[next_to_send_++]]);
  for (Bucket& bucket : buckets_) {
    if (bucket.pending) bucket.pending->wait();
    bucket.pending.reset();
  }
  if (!order_known_) learn_order();
}

// After the first step: how often each gradient comes in a round, and rank 0's order of completion for everybody.
void GradientBuckets::learn_order() {
  for (State& state : states_) state.expected = state.calls;
  std::stable_sort(send_order_.begin(), send_order_.end(), [this](std::size_t left, std::size_t right) {
    return buckets_[left].last_call < buckets_[right].last_call;
  });
  if (!is_alone(group_)) {
    torch::Tensor order = torch::empty({static_cast<std::int64_t>(send_order_.size())}, torch::kInt64);
    std::copy(send_order_.begin(), send_order_.end(), order.data_ptr<std::int64_t>());
    order = order.to(buckets_.front().flat.device());
    group_.broadcast(order, 0);
    group_.settle();
    order = order.cpu();
    std::copy_n(order.data_ptr<std::int64_t>(), order.numel(), send_order_.begin());
  }
  order_known_ = true;
}

}  // namespace sdtune::train
