#include "train/plan/pass_trace.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "train/profile/operator_flops.h"

namespace sdtune::train {
namespace {

class Recorder final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t alloc_size, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    live_ += alloc_size;
    if (!cost_.pieces.empty()) cost_.pieces.back().peak_bytes = std::max(cost_.pieces.back().peak_bytes, live_);
  }
  bool memoryProfilingEnabled() const override { return true; }

  void mark(const std::string& name) {
    end_piece();
    cost_.pieces.push_back({name, live_, live_});
  }
  void end_piece() {
    if (!cost_.pieces.empty()) cost_.pieces.back().end_bytes = live_;
  }
  // An operator whose operations are known may run others of which that holds too: a convolution by products of
  // patches.
  double begin(const at::RecordFunction& function) {
    const OperatorFlops flops = operator_flops(function.name(), function.inputs());
    if (flops.flops > 0 && depth_++ == 0) sum_of(flops) += flops.flops;
    return flops.flops;
  }
  void end(double flops) {
    if (flops > 0) --depth_;
  }
  void set_text(bool is_text) { is_text_ = is_text; }
  PassCost take() {
    end_piece();
    return std::move(cost_);
  }

 private:
  double& sum_of(const OperatorFlops& flops) {
    if (is_text_) return cost_.text_flops;
    return flops.is_attention ? cost_.attention_flops : cost_.flops;
  }

  PassCost cost_;
  bool is_text_ = false;
  std::int64_t live_ = 0;
  int depth_ = 0;  // operators under way whose operations are known
};

thread_local Recorder* recorder_of_thread = nullptr;

struct Call : at::ObserverContext {
  double flops = 0;
};

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
  auto call = std::make_unique<Call>();
  if (recorder_of_thread != nullptr) call->flops = recorder_of_thread->begin(function);
  return call;
}

void end_operator(const at::RecordFunction& /*function*/, at::ObserverContext* call) {
  if (recorder_of_thread != nullptr) recorder_of_thread->end(static_cast<Call*>(call)->flops);
}

// Operators of this thread go to the recorder while one lives.
class OperatorScope {
 public:
  explicit OperatorScope(Recorder& recorder)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(begin_operator, end_operator)
                                               .needsInputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    recorder_of_thread = &recorder;
  }
  ~OperatorScope() {
    recorder_of_thread = nullptr;
    at::removeCallback(handle_);
  }
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

TextScope::TextScope() {
  if (recorder_of_thread != nullptr) recorder_of_thread->set_text(true);
}

TextScope::~TextScope() {
  if (recorder_of_thread != nullptr) recorder_of_thread->set_text(false);
}

std::int64_t PassCost::peak_bytes() const {
  std::int64_t peak = 0;
  for (const PassPiece& piece : pieces) peak = std::max(peak, piece.peak_bytes);
  return peak;
}

PassCost trace_pass(const std::function<void(const MarkPiece&)>& pass) {
  const auto recorder = std::make_shared<Recorder>();
  const c10::DebugInfoGuard memory(c10::DebugInfoKind::PROFILER_STATE, recorder);
  const OperatorScope operators(*recorder);
  pass([&](const std::string& name) { recorder->mark(name); });
  return recorder->take();
}

}  // namespace sdtune::train
