// record_buckets MODEL METHOD PRECISION CELLS RECOMPUTED RANKS SHARD: which buckets a rank of RANKS sends in a training
// step of a published model (sd15, sdxl) or of the model in a folder (the shapes; weights are zeros), as JSON: of each
// its bytes, its owner (-1: all ranks get the sum) and when it was sent, as a share of backward. Timed on this
// machine's CPU.
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "model/base/json.h"
#include "model/files/install_paths.h"
#include "model/pipeline/empty_bundle.h"
#include "model/single_file/published_configs.h"
#include "train/dist/gradient_buckets.h"
#include "train/plan/model_trace.h"
#include "train/shard/shard_layout.h"

namespace sdtune::train {
namespace {

using Clock = std::chrono::steady_clock;

// The first of `ranks` ranks, alone: sends nothing, and notes what it would send.
class RecordingGroup final : public ProcessGroup {
 public:
  struct Sum {
    std::int64_t bytes, owner;
    Clock::time_point when;
  };

  explicit RecordingGroup(std::int64_t ranks) : ranks_(ranks) {}
  std::int64_t rank() const override { return 0; }
  std::int64_t world_size() const override { return ranks_; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) override { return note(tensor, -1); }
  std::unique_ptr<PendingReduce> start_reduce_sum(torch::Tensor tensor, std::int64_t root) override {
    return note(tensor, root);
  }
  void broadcast(torch::Tensor, std::int64_t) override {}
  void barrier() override {}
  std::vector<std::string> gather_text(const std::string& text) override { return {text}; }

  std::vector<Sum> sums;

 private:
  struct Nothing final : PendingReduce {
    void wait() override {}
  };
  std::unique_ptr<PendingReduce> note(const torch::Tensor& tensor, std::int64_t owner) {
    sums.push_back({static_cast<std::int64_t>(tensor.nbytes()), owner, Clock::now()});
    return std::make_unique<Nothing>();
  }
  std::int64_t ranks_;
};

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::vector<std::int64_t> owners_of(const TrainConfig& config, const std::vector<ModuleParameter>& trained,
                                    std::int64_t ranks) {
  if (config.dist.shard == "none") return {};
  return assign_owners(shard_costs(config.optim, trained, config.precision.mixed_precision != "no"), ranks);
}

Json record(ModelTrace& trace, const TrainConfig& config, const PassShape& shape, std::int64_t ranks) {
  std::vector<NamedParameter> parameters;
  std::int64_t weight_bytes = 0;
  for (const ModuleParameter& parameter : trace.trained()) {
    parameters.push_back({parameter.name, parameter.weight});
    weight_bytes += static_cast<std::int64_t>(parameter.weight.nbytes());
  }
  RecordingGroup group(ranks);
  BucketOptions options;
  options.float32_gradients = true;
  options.owners = owners_of(config, trace.trained(), ranks);
  GradientBuckets buckets(std::move(parameters), group, options);
  Clock::time_point backward;
  double forward_seconds = 0;
  for (int step = 0; step < 2; ++step) {  // the first learns the order
    group.sums.clear();
    buckets.begin_step(1);
    buckets.begin_round();
    const Clock::time_point begin = Clock::now();
    trace.run_training(shape, config.run.gradient_checkpointing, [&](const std::string& part) {
      if (part == "backward") backward = Clock::now();
    });
    forward_seconds = seconds(backward - begin);
    const Clock::time_point end = Clock::now();
    buckets.finish_step();
    if (step == 0) continue;
    Json sums = Json::array();
    for (const RecordingGroup::Sum& sum : group.sums) {
      const double share = std::min(1.0, seconds(sum.when - backward) / seconds(end - backward));
      sums.push_back({sum.bytes, sum.owner, std::round(share * 1e4) / 1e4});
    }
    return {{"forward_seconds", forward_seconds},
            {"backward_seconds", seconds(end - backward)},
            {"weight_bytes", weight_bytes},
            {"overlapped_share", buckets.overlapped_share().value_or(0)},
            {"buckets", sums}};
  }
  return {};
}

model::BundleConfigs configs_of(const std::string& model) {
  static const std::map<std::string, model::ModelFamily> kFamilies = {{"sd15", model::ModelFamily::kSd1},
                                                                      {"sdxl", model::ModelFamily::kSdxl}};
  const auto found = kFamilies.find(model);
  if (found == kFamilies.end()) return model::BundleConfigs::read(model);
  return model::published_configs(found->second, "epsilon", find_shared_file("models/portrait-64/tokenizer"));
}

int run(char** words) {
  TrainConfig config;
  config.run.method = words[2];
  config.precision.mixed_precision = words[3];
  config.run.gradient_checkpointing = std::string(words[5]) == "true";
  config.dist.shard = words[7];
  const std::int64_t cells = std::stoll(words[4]);
  ModelTrace trace(config, model::empty_bundle(configs_of(words[1]), {}));
  std::puts(record(trace, config, {1, cells, cells}, std::stoll(words[6])).dump().c_str());
  return 0;
}

}  // namespace
}  // namespace sdtune::train

int main(int count, char** words) {
  if (count != 8) {
    std::fputs("record_buckets MODEL METHOD PRECISION CELLS RECOMPUTED RANKS SHARD\n", stderr);
    return 2;
  }
  return sdtune::train::run(words);
}
