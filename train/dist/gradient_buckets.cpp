#include "train/dist/gradient_buckets.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace sdtune::train {

namespace {

// Gradients begin on cache lines, which vector loads and NCCL like.
constexpr std::int64_t kAlignment = 64;  // numbers

std::int64_t padded(std::int64_t count) {
  return (count + kAlignment - 1) / kAlignment * kAlignment;
}

// Buckets with one owner that are on their way at once: the owner holds a copy of every rank's until it has their sum.
constexpr std::size_t kMostOnTheirWay = 4;
constexpr std::int64_t kLeastBucketBytes = std::int64_t{1} << 20;

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
    : parameters_(std::move(parameters)), group_(group), options_(options) {
  gradients_.resize(parameters_.size());
  states_.resize(parameters_.size());
  for (const auto& [name, weight] : parameters_) {
    TORCH_CHECK(weight.is_leaf() && weight.requires_grad() && weight.is_non_overlapping_and_dense(),
                "gradient buckets: ", name, " must be a dense leaf that requires grad");
  }
  TORCH_CHECK(options_.owners.empty() ? !options_.frees_gradients : options_.owners.size() == parameters_.size(),
              "gradient buckets: each parameter has one owner, or none has");
  is_direct_ = !needs_buckets();
  if (is_direct_) {
    for (std::size_t index = 0; index < parameters_.size(); ++index) gradients_[index] = without_memory(index);
  } else {
    assign_buckets();
    for (Bucket& bucket : buckets_) allocate(bucket);
  }
  send_order_.resize(buckets_.size());
  std::iota(send_order_.begin(), send_order_.end(), std::size_t{0});
  std::vector<torch::Tensor> weights;
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[index].weight,
                                                   std::make_unique<GradientHook>(*this, index));
    weights.push_back(parameters_[index].weight);
  }
  chunks_ = std::make_unique<ChunkGradients>(
      std::move(weights), [this](std::size_t index, const auto& gradients) { take_chunks(index, gradients); });
}

GradientBuckets::~GradientBuckets() {
  for (const NamedParameter& parameter : parameters_) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.weight, nullptr);
  }
}

bool GradientBuckets::needs_buckets() const {
  if (!is_alone(group_) || options_.memory_stays) return true;
  return options_.float32_gradients &&
         std::any_of(parameters_.begin(), parameters_.end(),
                     [](const NamedParameter& parameter) { return parameter.weight.scalar_type() != torch::kFloat32; });
}

// Of the weight's shape and strides, and of the gradient's dtype.
torch::Tensor GradientBuckets::without_memory(std::size_t index) const {
  const torch::Tensor& weight = parameters_[index].weight;
  const torch::ScalarType dtype = options_.float32_gradients && !is_direct_ ? torch::kFloat32 : weight.scalar_type();
  torch::Tensor empty = torch::empty({0}, torch::dtype(dtype).device(weight.device()));
  empty.unsafeGetTensorImpl()->set_sizes_and_strides(weight.sizes(), weight.strides());
  return empty;
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

// Backward meets parameters last to first, so the last ones share the first bucket. With owners, as many buckets are
// open at a time as there are owners, so that each is smaller.
void GradientBuckets::assign_buckets() {
  using Kind = std::tuple<torch::ScalarType, std::string, std::int64_t>;
  std::map<Kind, std::pair<std::size_t, std::int64_t>> open;  // bucket and bytes in it
  const bool has_owners = !options_.owners.empty();
  const std::int64_t least = std::min(options_.bucket_bytes, kLeastBucketBytes);
  const std::int64_t full =
      has_owners ? std::max(least, options_.bucket_bytes / group_.world_size()) : options_.bucket_bytes;
  for (std::size_t index = parameters_.size(); index-- > 0;) {
    const torch::Tensor& weight = parameters_[index].weight;
    const torch::ScalarType dtype = options_.float32_gradients ? torch::kFloat32 : weight.scalar_type();
    const std::int64_t owner = has_owners ? options_.owners[index] : kNoOwner;
    const Kind kind{dtype, weight.device().str(), owner};
    auto found = open.find(kind);
    if (found == open.end()) {
      buckets_.emplace_back();
      buckets_.back().memory = torch::dtype(dtype).device(weight.device());
      buckets_.back().owner = owner;
      found = open.emplace(kind, std::pair{buckets_.size() - 1, std::int64_t{0}}).first;
    }
    auto& [number, bytes] = found->second;
    Bucket& bucket = buckets_[number];
    bucket.members.push_back(index);
    bucket.count += padded(weight.numel());
    states_[index].bucket = number;
    bytes += padded(weight.numel()) * static_cast<std::int64_t>(c10::elementSize(dtype));
    if (bytes >= full) open.erase(found);
  }
}

// Where each member is in a flat memory of the bucket.
std::vector<torch::Tensor> GradientBuckets::parts(const Bucket& bucket, const torch::Tensor& flat) const {
  std::vector<torch::Tensor> parts;
  std::int64_t offset = 0;
  for (const std::size_t index : bucket.members) {
    const torch::Tensor& weight = parameters_[index].weight;
    parts.push_back(flat.as_strided(weight.sizes(), weight.strides(), offset));
    offset += padded(weight.numel());
  }
  return parts;
}

void GradientBuckets::allocate(Bucket& bucket) {
  const bool stays = !options_.frees_gradients || is_mine(bucket);
  if (!stays) {
    for (const std::size_t index : bucket.members) gradients_[index] = without_memory(index);
    return;
  }
  const torch::Tensor flat = torch::zeros({bucket.count}, bucket.memory);
  const std::vector<torch::Tensor> views = parts(bucket, flat);
  for (std::size_t i = 0; i < views.size(); ++i) gradients_[bucket.members[i]] = views[i];
  if (options_.frees_gradients) {
    bucket.kept = flat;
    return;
  }
  bucket.flat = flat;
  for (std::size_t i = 0; i < views.size(); ++i) states_[bucket.members[i]].target = views[i];
}

// Memory for this round's gradients of a bucket that has none: the owner's own, where that holds nothing yet.
void GradientBuckets::open(Bucket& bucket) {
  if (bucket.flat.defined()) return;
  const bool is_first = bucket.kept.defined() && !bucket.has_sum;
  bucket.flat = is_first ? bucket.kept : torch::zeros({bucket.count}, bucket.memory);
  const std::vector<torch::Tensor> views = parts(bucket, bucket.flat);
  for (std::size_t i = 0; i < views.size(); ++i) states_[bucket.members[i]].target = views[i];
}

void GradientBuckets::begin_step(std::int64_t rounds) {
  TORCH_CHECK(rounds > 0, "gradient buckets: a step has at least one micro-batch, got ", rounds);
  TORCH_CHECK(order_known_ || !options_.frees_gradients, "gradient buckets: begin_step before agree_on_order");
  rounds_ = rounds;
  round_ = 0;
  chunks_->begin(1);
  for (std::size_t index = 0; index < states_.size(); ++index) {
    states_[index].written = false;
    if (is_direct_ && !states_[index].is_zero) gradients_[index].set_data(without_memory(index));
  }
  for (Bucket& bucket : buckets_) {
    bucket.has_sum = false;
    if (options_.frees_gradients) bucket.flat.reset();  // of a step that was given up
  }
  // A gradient that other code left must not be summed into ours.
  for (const NamedParameter& parameter : parameters_) parameter.weight.mutable_grad() = torch::Tensor();
}

void GradientBuckets::begin_round(std::int64_t chunks) {
  if (is_probing_) return;
  TORCH_CHECK(round_ < rounds_, "gradient buckets: more micro-batches than the ", rounds_, " of begin_step");
  TORCH_CHECK(chunks == 1 || is_alone(group_), "gradient buckets: chunks where several ranks train");
  chunks_->finish();
  if (round_ > 0 && options_.frees_gradients) send_the_rest();
  ++round_;
  passes_ = 1;
  chunks_->begin(chunks);
  overlap_.clear();
  next_to_send_ = 0;
  on_their_way_.clear();
  for (State& state : states_) {
    state.calls = 0;
    if (options_.frees_gradients) state.written = false;
  }
  for (Bucket& bucket : buckets_) {
    bucket.sent = false;
    bucket.pending.reset();
    bucket.unfinished =
        static_cast<std::size_t>(std::count_if(bucket.members.begin(), bucket.members.end(),
                                               [this](std::size_t index) { return states_[index].expected > 0; }));
  }
}

void GradientBuckets::note_forward_passes(std::int64_t count) {
  const std::lock_guard lock(counting_);
  passes_ = std::max(passes_, count);
}

void GradientBuckets::take_gradient(std::size_t index) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor incoming = std::exchange(parameters_[index].weight.mutable_grad(), torch::Tensor());
  if (!incoming.defined()) return;
  if (is_probing_) return count(index);
  TORCH_CHECK(round_ > 0, "gradient buckets: backward before begin_step and begin_round");
  write(index, incoming);
}

void GradientBuckets::take_chunks(std::size_t index, const std::vector<torch::Tensor>& gradients) {
  if (is_direct_) return write(index, sum_of_chunks(gradients));
  for (const torch::Tensor& gradient : gradients) write(index, gradient);  // in the dtype of the sum
}

void GradientBuckets::write(std::size_t index, const torch::Tensor& incoming) {
  State& state = states_[index];
  if (is_direct_) {
    take_directly(index, incoming);
    state.written = true;
    return;
  }
  Bucket& bucket = buckets_[state.bucket];
  TORCH_CHECK(!bucket.sent, "gradient buckets: ", parameters_[index].name, " came more often than in the first step (",
              state.expected, " times a micro-batch), after it was summed over the ranks");
  open(bucket);
  if (state.written) {
    state.target.add_(incoming);
  } else {
    state.target.copy_(incoming);
  }
  state.written = true;
  count(index);
}

// Under activation recomputation this runs inside a nested backward, and a parameter that several recomputed parts
// share comes several times in a round. So a gradient counts as finished when it came as often as in the first step.
void GradientBuckets::count(std::size_t index) {
  const std::lock_guard lock(counting_);
  State& state = states_[index];
  ++state.calls;
  if (is_direct_) return;
  Bucket& bucket = buckets_[state.bucket];
  bucket.last_call = ++clock_;
  if (is_probing_) return;
  overlap_.note_gradient();
  const bool may_send = order_known_ && is_sent_round() && passes_ <= learned_passes_;
  if (!may_send || state.calls != state.expected) return;
  if (--bucket.unfinished == 0) send_ready();
}

// Collectives must be called in the same order everywhere, so a bucket waits for those before it.
void GradientBuckets::send_ready() {
  while (next_to_send_ < send_order_.size() && buckets_[send_order_[next_to_send_]].unfinished == 0) {
    send(send_order_[next_to_send_++]);
  }
}

void GradientBuckets::send(std::size_t index) {
  Bucket& bucket = buckets_[index];
  open(bucket);
  for (const std::size_t member : bucket.members) {
    if (!states_[member].written) states_[member].target.zero_();
  }
  bucket.sent = true;
  if (is_alone(group_)) return;
  const bool has_owner = bucket.owner != kNoOwner;
  while (has_owner && on_their_way_.size() >= kMostOnTheirWay) {
    complete(buckets_[on_their_way_.front()]);
    on_their_way_.pop_front();
  }
  bucket.wire = options_.sends_bfloat16 ? bucket.flat.to(torch::kBFloat16) : bucket.flat;
  bucket.pending =
      has_owner ? group_.start_reduce_sum(bucket.wire, bucket.owner) : group_.start_all_reduce_sum(bucket.wire);
  on_their_way_.push_back(index);
  overlap_.note_sent(bucket.wire.nbytes());
}

void GradientBuckets::complete(Bucket& bucket) {
  const torch::NoGradGuard no_grad;
  bucket.pending->wait();
  bucket.pending.reset();
  if (is_mine(bucket) && !bucket.wire.is_same(bucket.flat)) bucket.flat.copy_(bucket.wire);
  bucket.wire.reset();
  if (!options_.frees_gradients) return;
  if (bucket.kept.defined() && bucket.has_sum) bucket.kept.add_(bucket.flat);
  bucket.has_sum = bucket.kept.defined();
  bucket.flat.reset();
  for (const std::size_t index : bucket.members) states_[index].target.reset();
}

void GradientBuckets::send_the_rest() {
  const torch::NoGradGuard no_grad;
  while (next_to_send_ < send_order_.size()) send(send_order_[next_to_send_++]);
  for (const std::size_t index : on_their_way_) complete(buckets_[index]);
  on_their_way_.clear();
}

void GradientBuckets::finish_step() {
  TORCH_CHECK(round_ == rounds_, "gradient buckets: ", round_, " micro-batches of ", rounds_, " were run");
  const torch::NoGradGuard no_grad;
  chunks_->finish();
  if (is_direct_) return zero_the_missing();
  send_the_rest();
  if (!order_known_) learn_order();
}

void GradientBuckets::probe(const std::function<void()>& backward) {
  struct Probing {
    explicit Probing(bool& is_on) : on(is_on) { on = true; }
    ~Probing() { on = false; }
    Probing(const Probing&) = delete;
    Probing& operator=(const Probing&) = delete;
    bool& on;
  } const probing(is_probing_);
  for (const NamedParameter& parameter : parameters_) parameter.weight.mutable_grad() = torch::Tensor();
  for (State& state : states_) state.calls = 0;
  passes_ = 1;
  backward();
}

void GradientBuckets::agree_on_order() {
  learn_order();
}

std::int64_t GradientBuckets::gradient_bytes() const {
  std::size_t bytes = 0;
  for (const Bucket& bucket : buckets_) {
    if (bucket.kept.defined()) bytes += bucket.kept.nbytes();
    if (bucket.flat.defined() && !bucket.flat.is_same(bucket.kept)) bytes += bucket.flat.nbytes();
  }
  return static_cast<std::int64_t>(bytes);
}

// After the first step: how often each gradient comes in a round, and rank 0's order of completion for everybody.
void GradientBuckets::learn_order() {
  for (State& state : states_) state.expected = state.calls;
  learned_passes_ = passes_;
  std::stable_sort(send_order_.begin(), send_order_.end(), [this](std::size_t left, std::size_t right) {
    return buckets_[left].last_call < buckets_[right].last_call;
  });
  if (!is_alone(group_)) {
    torch::Tensor order = torch::empty({static_cast<std::int64_t>(send_order_.size())}, torch::kInt64);
    std::copy(send_order_.begin(), send_order_.end(), order.data_ptr<std::int64_t>());
    order = order.to(parameters_.front().weight.device());
    group_.broadcast(order, 0);
    group_.settle();
    order = order.cpu();
    std::copy_n(order.data_ptr<std::int64_t>(), order.numel(), send_order_.begin());
  }
  order_known_ = true;
}

}  // namespace sdtune::train
