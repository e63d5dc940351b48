#include "train/dist/process_group.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "model/base/error.h"
#include "model/core/cuda_library.h"
#include "train/dist/backend.h"
#include "train/dist/c10d_group.h"
#include "train/dist/heartbeat.h"
#include "train/dist/rank_store.h"

namespace sdtune::train {

namespace {

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// c10d prints a stack trace to stderr for every connection that ends or is refused; our one error line says more.
void silence_c10d() {
  const char* debug = std::getenv("SDTUNE_DEBUG");
  const bool wanted = debug != nullptr && std::strcmp(debug, "1") == 0;
  if (!wanted) FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, c10::GLOG_FATAL);
}

struct NothingPending final : PendingReduce {
  void wait() override {}
};

}  // namespace

std::unique_ptr<PendingReduce> ProcessGroup::start_reduce_sum(torch::Tensor tensor, std::int64_t) {
  return start_all_reduce_sum(std::move(tensor));
}

std::unique_ptr<PendingReduce> ProcessGroup::start_broadcast(torch::Tensor tensor, std::int64_t root) {
  broadcast(std::move(tensor), root);
  return std::make_unique<NothingPending>();
}

std::vector<torch::Tensor> ProcessGroup::gather_bytes(const torch::Tensor& mine,
                                                      const std::vector<std::int64_t>& counts) {
  std::vector<torch::Tensor> bytes;
  for (std::int64_t from = 0; from < world_size(); ++from) {
    bytes.push_back(from == rank() ? mine : torch::empty({counts.at(static_cast<std::size_t>(from))}, torch::kUInt8));
    if (bytes.back().numel() > 0) broadcast(bytes.back(), from);
  }
  if (!is_first()) bytes.clear();
  return bytes;
}

std::unique_ptr<ProcessGroup> connect_ranks(const RankEnv& env, torch::Device device, const DistOptions& options,
                                            const std::string& configuration, const StopFlag* stop) {
  const char* forced = std::getenv("SDTUNE_FORCE_NCCL");
  const bool prove_nccl = device.is_cuda() && forced != nullptr && std::strcmp(forced, "1") == 0;
  if (env.world_size == 1 && !prove_nccl) return std::make_unique<SingleProcess>();
  silence_c10d();
  RankEnv joined = env;
  if (joined.master_address.empty()) {  // one rank, started by hand
    joined.master_address = "127.0.0.1";
  }
  const RankStore store = meet_ranks(joined, {milliseconds_of(options.start_timeout), configuration, stop});
  const CollectiveRules rules{milliseconds_of(options.peer_timeout), device, device.is_cuda()};
  const BackendRequest request{store.store, env.rank, env.world_size, rules.timeout};
  const NcclFactory make_nccl =
      device.is_cuda() ? reinterpret_cast<NcclFactory>(model::cuda_symbol(kNcclFactorySymbol)) : nullptr;
  const auto make_backend = [request, make_nccl] {
    return make_nccl != nullptr ? Collectives::Backend::reclaim(make_nccl(request)) : make_gloo_backend(request);
  };
  return std::make_unique<C10dGroup>(C10dGroup::Place{env.rank, env.world_size},
                                     std::make_unique<Heartbeat>(store, joined), make_backend, rules);
}

}  // namespace sdtune::train
