#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "model/base/error.h"
#include "train/prove/parts.h"
#include "train/prove/record_comparison.h"
#include "train/prove/step_record.h"

namespace sdtune::train {

namespace {

// A port of this host without a listener.
int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = probe >= 0 && bind(probe, general, size) == 0 && getsockname(probe, general, &size) == 0;
  if (probe >= 0) close(probe);
  if (!is_bound) throw StorageError("ranks", "this host has no free port at 127.0.0.1");
  return ntohs(address.sin_port);
}

// One process for each rank, as torchrun starts them.
std::vector<Child> rank_processes(const ProveContext& context, const std::string& name,
                                  const std::filesystem::path& config, std::int64_t ranks) {
  const std::string port = std::to_string(free_port()), size = std::to_string(ranks);
  std::vector<Child> children;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const std::string number = std::to_string(rank);
    Child child = context.piece("steps", name + "_rank" + number, config, {"--record", context.work(name).string()});
    child.environment = {{"RANK", number},          {"WORLD_SIZE", size},         {"LOCAL_RANK", number},
                         {"MASTER_PORT", port},     {"MASTER_ADDR", "127.0.0.1"}, {"LOCAL_WORLD_SIZE", size},
                         {"SDTUNE_FORCE_NCCL", "1"}};
    children.push_back(std::move(child));
  }
  return children;
}

// Adds the checks of so many ranks; unset where that went well.
std::optional<PartResult> add_ranks(const ProveContext& context, std::int64_t ranks, PartResult& result) {
  const std::string size = std::to_string(ranks), name = "ranks_" + size;
  const std::int64_t batch = std::max<std::int64_t>(ranks, 2);
  TrainConfig alone = step_config(context, "no", name + "_alone"), together = step_config(context, "no", name);
  alone.run.train_batch_size = batch;
  together.run.train_batch_size = batch / ranks;
  if (context.is_cuda && ranks > 1) together.run.device = "cuda";  // each rank its own GPU
  const std::filesystem::path alone_file = context.write_config(name + "_alone", alone);
  const std::filesystem::path together_file = context.write_config(name, together);
  if (std::optional<PartResult> fault = ensure_steps(context, result.name, name + "_alone", alone_file)) return fault;
  if (!has_record(context.work(name))) {
    const std::vector<Child> children = rank_processes(context, name, together_file, ranks);
    const ChildrenEnd end = run_children(children, context.limit(), context.stop);
    if (!end.all_done()) return ended_badly(context, result.name, end, children, /*may_skip=*/true);
  }
  const StepRecord record = read_record(context.work(name));
  for (Check check : compare_records(record, read_record(context.work(name + "_alone")), "float32")) {
    check.name = size + (ranks == 1 ? " rank: " : " ranks: ") + check.name;
    check.source = "gradients are summed in float32, in another order";
    result.checks.push_back(std::move(check));
  }
  result.checks.push_back({size + (ranks == 1 ? " rank: " : " ranks: ") + "bytes summed",
                           record.facts.at("reduced_bytes").get<double>(),
                           1,
                           {},
                           "without sums nothing is proved"});
  result.numbers[name] = record.facts;
  result.peak_bytes = std::max(result.peak_bytes, record.facts.at("peak_bytes").get<std::int64_t>());
  return std::nullopt;
}

}  // namespace

PartResult ranks_part(const ProveContext& context) {
  PartResult result;
  result.name = "ranks";
  std::vector<std::int64_t> sizes = {2};
  if (context.is_cuda)
    sizes = context.gpus > 1 ? std::vector<std::int64_t>{1, context.gpus} : std::vector<std::int64_t>{1};
  for (const std::int64_t ranks : sizes) {
    if (std::optional<PartResult> fault = add_ranks(context, ranks, result)) return *fault;
  }
  result.numbers["backend"] = context.is_cuda ? "nccl" : "gloo";
  result.judge();
  return result;
}

}  // namespace sdtune::train
