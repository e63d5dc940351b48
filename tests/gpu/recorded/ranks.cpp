// NCCL's place on the recorded GPU: collectives that are counted and move nothing. Of every rank the numbers are this
// one's, which is right where all ranks say the same; sums of numbers are not.
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tests/gpu/recorded/contents.h"
#include "tests/gpu/recorded/device.h"
#include "tests/gpu/recorded/record.h"
#include "train/dist/backend.h"

namespace sdtune::record {

namespace {

// Over once the host is as far ahead as a stream's queue is long. One query before that costs no time of the host; who
// asks again and has launched nothing meanwhile is waiting.
class RecordedWork final : public c10d::Work {
 public:
  bool isCompleted() override {
    const std::int64_t now = Record::instance().position();
    if (is_over_ || now >= begin_ + kQueuedLaunches) return true;
    if (now == asked_at_) {
      Record::instance().add_wait("collective");
      is_over_ = true;
    }
    asked_at_ = now;
    return is_over_;
  }
  bool wait(std::chrono::milliseconds) override {
    if (!isCompleted()) Record::instance().add_wait("collective");
    return is_over_ = true;
  }
  void synchronize() override {}  // the stream waits, and not the host

 private:
  std::int64_t begin_ = Record::instance().position();
  std::int64_t asked_at_ = -1;
  bool is_over_ = false;
};

class RecordedBackend final : public c10d::Backend {
 public:
  explicit RecordedBackend(const train::BackendRequest& request)
      : Backend(static_cast<int>(request.rank), static_cast<int>(request.world_size)), store_(request.store) {}
  const std::string getBackendName() const override { return "recorded"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return counted("nccl::all_reduce", 2 * bytes_of(tensors));
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return counted("nccl::broadcast", bytes_of(tensors));
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs, const c10d::AllgatherOptions&) override {
    const std::vector<char> mine = contents_of(inputs.front().const_data_ptr());
    for (const at::Tensor& output : outputs.front()) keep_contents(output.const_data_ptr(), mine.data(), mine.size());
    return counted("nccl::all_gather", bytes_of(inputs) + bytes_of(outputs.front()));
  }
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions&) override {
    return counted("nccl::reduce", 2 * bytes_of(tensors));
  }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>&,
                                               std::vector<std::int64_t>&, const c10d::AllToAllOptions&) override {
    return counted("nccl::all_to_all", bytes_of({input, output}));
  }
  void abort() override {}

 private:
  static std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
    std::int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
    return bytes;
  }
  static c10::intrusive_ptr<c10d::Work> counted(const char* name, std::int64_t bytes) {
    Record::instance().add_operator(name, bytes);
    return c10::make_intrusive<RecordedWork>();
  }
  c10::intrusive_ptr<c10d::Store>
      store_;  // lives as long as the backend, as with NCCL's: on rank 0 it serves the others
};

}  // namespace

}  // namespace sdtune::record

extern "C" __attribute__((visibility("default"))) c10d::Backend* sdtune_nccl_backend(
    const sdtune::train::BackendRequest& request) {
  return c10::make_intrusive<sdtune::record::RecordedBackend>(request).release();
}
