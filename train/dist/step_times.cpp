#include "train/dist/step_times.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/core/device_copy.h"

namespace sdtune::train {

namespace {

constexpr std::size_t kMostStepsBehind = 32;  // that a GPU may be behind; older ones are given up

}  // namespace

StepTimes::StepTimes(ProcessGroup& group, torch::Device device) : group_(group), device_(device) {}

void StepTimes::begin_step() {
  if (group_.world_size() == 1) return;
  group_.take_waits();  // of what came between the steps
  begin_.emplace(device_);
}

void StepTimes::end_step() {
  if (!begin_) return;
  steps_.push_back({std::move(*begin_), model::Timestamp(device_), group_.take_waits()});
  begin_.reset();
  if (steps_.size() > kMostStepsBehind) steps_.pop_front();
}

std::optional<StepTimes::Seconds> StepTimes::seconds_of(const Step& step) {
  const std::optional<double> whole = step.end.seconds_after(step.begin);
  if (!whole) return std::nullopt;
  Seconds seconds;
  for (const CollectiveWait& wait : step.waits) seconds.waiting += wait.end.seconds_after(wait.begin).value_or(0);
  seconds.computing = std::max(*whole - seconds.waiting, 0.0);
  return seconds;
}

torch::Tensor StepTimes::own() {
  const std::int64_t ranks = group_.world_size();
  while (!steps_.empty()) {
    const std::optional<Seconds> seconds = seconds_of(steps_.front());
    if (!seconds) break;
    newest_ = *seconds;
    steps_.pop_front();
  }
  const torch::Tensor times = torch::zeros({2 * ranks}, torch::kFloat32);
  times.data_ptr<float>()[group_.rank()] = static_cast<float>(newest_.computing);
  times.data_ptr<float>()[ranks + group_.rank()] = static_cast<float>(newest_.waiting);
  return model::copy_to_device(times, device_);
}

std::optional<RankBalance> balance_of(std::span<const double> times) {
  const std::size_t ranks = times.size() / 2;
  const std::span<const double> computing = times.first(ranks), waiting = times.subspan(ranks);
  if (ranks < 2 || std::any_of(computing.begin(), computing.end(), [](double seconds) { return seconds <= 0; })) {
    return std::nullopt;
  }
  const auto slowest =
      static_cast<std::size_t>(std::max_element(computing.begin(), computing.end()) - computing.begin());
  const double mean = std::accumulate(computing.begin(), computing.end(), 0.0) / static_cast<double>(ranks);
  RankBalance balance;
  balance.communication_share = waiting[slowest] / (computing[slowest] + waiting[slowest]);
  balance.straggler_ratio = computing[slowest] / mean;
  balance.slowest_rank = static_cast<std::int64_t>(slowest);
  return balance;
}

}  // namespace sdtune::train
