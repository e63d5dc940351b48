#include "train/run/save_checkpoint.h"

#include "model/core/cpu_implementation.h"
#include "train/run/memory_use.h"
#include "train/run/save_time.h"
#include "train/shard/shard_gather.h"

namespace sdtune::train {

namespace {

constexpr std::int64_t kSpareMemory = std::int64_t{1} << 30;  // bytes that other programs may come to want

RunState state_of(const Run& run, std::int64_t done) {
  RunState state;
  state.step = done;
  state.updates = run.optimizer->updates().item<std::int64_t>();
  state.effective_batch = run.data.plan->shape().effective();
  state.attempt = run.attempt;
  state.implementation = model::cpu_implementation();
  state.scaler = run.scaler->state();
  state.fingerprint = run.fingerprint;
  return state;
}

model::NamedTensors averages_of(const Run& run) {
  return run.average ? run.average->values() : model::NamedTensors{};
}

model::NamedTensors masters_of(const Optimizer& optimizer) {
  model::NamedTensors masters;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    masters.emplace_back(optimizer.parameters()[i].name, optimizer.masters()[i]);
  }
  return masters;
}

CheckpointTensors tensors_of(ShardGather& gather) {
  return {gather.tensors(), [&gather](std::size_t index) { return gather.read(index); }};
}

std::filesystem::path save_shards(Run& run, CheckpointWriter& writer, std::int64_t done) {
  const std::optional<std::filesystem::path> there =
      run.group->is_first() ? writer.find(done) : std::optional<std::filesystem::path>();
  run.group->barrier();  // however long reading it took
  if (!run.group->gather_text(there ? "there" : "").front().empty()) return there.value_or("");
  ShardGather weights(*run.group, masters_of(*run.optimizer));
  ShardGather states(*run.group, run.optimizer->states());
  ShardGather averages(*run.group, averages_of(run));
  if (run.group->is_first()) {
    return writer.write({tensors_of(weights), tensors_of(states), tensors_of(averages)}, state_of(run, done));
  }
  for (ShardGather* gather : {&weights, &states, &averages}) gather->serve();
  return {};
}

}  // namespace

std::filesystem::path save_checkpoint(Run& run, CheckpointWriter& writer, std::int64_t done) {
  if (run.shards->is_sharded()) return save_shards(run, writer, done);
  return writer.write(*run.optimizer, state_of(run, done), averages_of(run));
}

CheckpointCopy copy_checkpoint(const Run& run, std::int64_t done) {
  return {copy_to_host(checkpoint_content(*run.optimizer, averages_of(run))), state_of(run, done)};
}

bool can_save_in_background(const Run& run) {
  if (!run.device.is_cuda() || run.shards->is_sharded()) return false;
  const std::int64_t copy = checkpoint_bytes(run);
  return free_memory_bytes() > copy + copy / 4 + kSpareMemory;
}

}  // namespace sdtune::train
