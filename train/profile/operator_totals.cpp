#include "train/profile/operator_totals.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "model/base/clock.h"
#include "train/profile/operator_flops.h"

namespace sdtune::train {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

class OperatorTotals::Sums {
 public:
  void add_operator(const char* name, double seconds, double flops) {
    const std::lock_guard alone(mutex_);
    OperatorTotal& total = operators_[name];
    total.seconds += seconds;
    total.flops += flops;
    ++total.calls;
  }
  void add_phase(const char* name, double seconds) {
    const std::lock_guard alone(mutex_);
    auto found =
        std::find_if(phases_.begin(), phases_.end(), [&](const PhaseTotal& phase) { return phase.name == name; });
    if (found == phases_.end()) found = phases_.insert(phases_.end(), {name, 0});
    found->seconds += seconds;
  }
  std::vector<OperatorTotal> operators() const {
    const std::lock_guard alone(mutex_);
    std::vector<OperatorTotal> sorted;
    for (const auto& [name, total] : operators_) sorted.push_back({name, total.seconds, total.calls, total.flops});
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return sorted;
  }
  std::vector<PhaseTotal> phases() const {
    const std::lock_guard alone(mutex_);
    return phases_;
  }

  static std::weak_ptr<Sums> current;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, OperatorTotal> operators_;
  std::vector<PhaseTotal> phases_;
};

std::weak_ptr<OperatorTotals::Sums> OperatorTotals::Sums::current;

namespace {

// A call that is under way on a thread.
struct Call : at::ObserverContext {
  Clock::time_point start = Clock::now();
  double inner_seconds = 0;  // of the operators that it has called and that are counted themselves
  double flops = 0;
  bool is_counted = true;  // false beneath an operator whose floating-point operations are known: that one has the time
  Call* caller = nullptr;
};

thread_local Call* innermost = nullptr;

std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
  auto call = std::make_unique<Call>();
  if (function.scope() == at::RecordScope::USER_SCOPE) return call;
  call->flops = operator_flops(function.name(), function.inputs()).flops;
  call->caller = std::exchange(innermost, call.get());
  call->is_counted = call->caller == nullptr || (call->caller->is_counted && call->caller->flops == 0);
  call->start = Clock::now();
  return call;
}

}  // namespace

OperatorTotals::OperatorTotals() : sums_(std::make_shared<Sums>()) {
  Sums::current = sums_;
  const auto end_call = [](const at::RecordFunction& function, at::ObserverContext* context) {
    auto& call = *static_cast<Call*>(context);
    const double seconds = seconds_since(call.start);
    const std::shared_ptr<Sums> sums = Sums::current.lock();
    if (function.scope() == at::RecordScope::USER_SCOPE) {
      if (sums) sums->add_phase(function.name(), seconds);
      return;
    }
    innermost = call.caller;
    if (!call.is_counted) return;
    if (innermost != nullptr) innermost->inner_seconds += seconds;
    if (sums) sums->add_operator(function.name(), seconds - call.inner_seconds, call.flops);
  };
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(begin_call, end_call)
                                      .needsInputs(true)
                                      .scopes({at::RecordScope::FUNCTION, at::RecordScope::USER_SCOPE}));
}

OperatorTotals::~OperatorTotals() {
  at::removeCallback(handle_);
}

std::vector<OperatorTotal> OperatorTotals::operators() const {
  return sums_->operators();
}

std::vector<PhaseTotal> OperatorTotals::phases() const {
  return sums_->phases();
}

}  // namespace sdtune::train
