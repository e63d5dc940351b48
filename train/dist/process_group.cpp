#include "train/dist/process_group.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "model/base/error.h"
#include "model/core/cuda_library.h"
#include "train/dist/backend.h"
#include "train/dist/rank_store.h"

namespace sdtune::train {

namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// c10d prints a stack trace to stderr for every connection that ends; our one error line says more.
void silence_c10d() {
  const char* debug = std::getenv("SDTUNE_DEBUG");
  const bool wanted = debug != nullptr && std::strcmp(debug, "1") == 0;
  if (!wanted) FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, c10::GLOG_ERROR);
}

class C10dGroup final : public ProcessGroup {
 public:
  C10dGroup(const RankEnv& env, torch::Device device, const DistOptions& options, const std::string& config_hash)
      : env_(env),
        device_(device),
        timeout_(milliseconds_of(options.peer_timeout)),
        store_(env, milliseconds_of(options.start_timeout), config_hash) {
    const BackendRequest request{store_.store(), env.rank, env.world_size, timeout_};
    attempt("joining the ranks", [&] {
      backend_ = device.is_cuda() ? c10::intrusive_ptr<c10d::Backend>::reclaim(
                                        reinterpret_cast<NcclFactory>(model::cuda_symbol(kNcclFactorySymbol))(request))
                                  : make_gloo_backend(request);
    });
  }

  std::int64_t rank() const override { return env_.rank; }
  std::int64_t world_size() const override { return env_.world_size; }

  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) override {
    count_reduction(static_cast<std::int64_t>(tensor.nbytes()));
    c10d::AllreduceOptions options;
    options.timeout = timeout_;
    std::vector<torch::Tensor> tensors{std::move(tensor)};
    return std::make_unique<Pending>(*this, start([&] { return backend_->allreduce(tensors, options); }));
  }

  void broadcast(torch::Tensor tensor, std::int64_t root) override {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    options.timeout = timeout_;
    std::vector<torch::Tensor> tensors{std::move(tensor)};
    wait("broadcast", start([&] { return backend_->broadcast(tensors, options); }));
  }

  void barrier() override {
    store_.note_progress();
    attempt("waiting for all ranks", [&] {
      if (!store_.wait_for_all(timeout_)) throw std::runtime_error("it ended, or shows no life");
    });
    // The store's rank may end after this, so all must have left the store before.
    torch::Tensor token = torch::zeros({1}, torch::dtype(torch::kFloat32).device(device_));
    c10d::AllreduceOptions options;
    options.timeout = timeout_;
    std::vector<torch::Tensor> tensors{token};
    wait("barrier", start([&] { return backend_->allreduce(tensors, options); }));
    static_cast<void>(token.cpu());  // on a GPU: only now everybody has arrived
  }

  std::vector<std::string> gather_text(const std::string& text) override {
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

 private:
  // A reduction on its way.
  class Pending final : public PendingReduce {
   public:
    Pending(C10dGroup& group, c10::intrusive_ptr<c10d::Work> work) : group_(group), work_(std::move(work)) {}
    void wait() override { group_.wait("summing over the ranks", work_); }

   private:
    C10dGroup& group_;
    c10::intrusive_ptr<c10d::Work> work_;
  };

  // Runs what talks to the others; whatever c10d throws there means that a rank is lost.
  template <typename Function>
  void attempt(const char* doing, const Function& function) {
    try {
      function();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      throw PeerLostError(store_.find_lost(), std::string("was lost while ") + doing, text.substr(0, text.find('\n')));
    }
  }

  template <typename Function>
  c10::intrusive_ptr<c10d::Work> start(const Function& function) {
    store_.note_progress();
    c10::intrusive_ptr<c10d::Work> work;
    attempt("starting a collective", [&] { work = function(); });
    return work;
  }

  void wait(const char* doing, const c10::intrusive_ptr<c10d::Work>& work) {
    // With a timeout NCCL would block the host until the GPU has come that far; its own watchdog keeps the time there.
    attempt(doing, [&] { device_.is_cuda() ? work->wait() : work->wait(timeout_); });
  }

  // One tensor of each rank, on the CPU.
  std::vector<torch::Tensor> all_gather(const torch::Tensor& mine) {
    std::vector<torch::Tensor> inputs{mine.to(device_)};
    std::vector<std::vector<torch::Tensor>> outputs(1);
    for (std::int64_t i = 0; i < env_.world_size; ++i) outputs[0].push_back(torch::empty_like(inputs[0]));
    c10d::AllgatherOptions options;
    options.timeout = timeout_;
    wait("gathering", start([&] { return backend_->allgather(outputs, inputs, options); }));
    for (torch::Tensor& output : outputs[0]) output = output.cpu();
    return outputs[0];
  }

  RankEnv env_;
  torch::Device device_;
  std::chrono::milliseconds timeout_;
  RankStore store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
};

}  // namespace

std::unique_ptr<ProcessGroup> connect_ranks(const RankEnv& env, torch::Device device, const DistOptions& options,
                                            const std::string& config_hash) {
  const char* forced = std::getenv("SDTUNE_FORCE_NCCL");
  const bool prove_nccl = device.is_cuda() && forced != nullptr && std::strcmp(forced, "1") == 0;
  if (env.world_size == 1 && !prove_nccl) return std::make_unique<SingleProcess>();
  silence_c10d();
  RankEnv joined = env;
  if (joined.master_address.empty()) {  // one rank, started by hand
    joined.master_address = "127.0.0.1";
  }
  return std::make_unique<C10dGroup>(joined, device, options, config_hash);
}

}  // namespace sdtune::train
