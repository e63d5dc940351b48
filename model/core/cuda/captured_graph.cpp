// CUDA graphs, part of libsdtune_cuda.so because it links libtorch_cuda.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>
#include <memory>

#include "model/core/device_graph.h"

namespace {

using sdtune::model::DeviceGraph;

// Graphs that never run at the same time are captured on one stream, for whose products LibTorch keeps memory, and take
// what they do not keep from one pool. LibTorch lets a pool be used again only while one of its graphs is there.
struct Place {
  c10::cuda::CUDAStream stream;
  c10::MempoolId_t pool;
};

std::shared_ptr<const Place> make_place(c10::DeviceIndex device) {
  const c10::cuda::CUDAStream stream =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device);  // not the default one
  return std::make_shared<const Place>(Place{stream, at::cuda::graph_pool_handle()});
}

// A graph whose capture may fail. LibTorch then leaves its allocators as if the capture were still under way: they
// would ask a graph that is gone about every block, and give no memory back where it runs out.
class Graph final : public at::cuda::CUDAGraph {
 public:
  // Backward runs on a thread of autograd's own, and another may write a checkpoint: only this thread's calls are bound
  // by what a capture forbids.
  void begin(c10::MempoolId_t pool) {
    try {
      capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    } catch (const std::exception&) {
      leave_pool(/*is_entered=*/false);
      throw;
    }
  }
  void end() {
    try {
      capture_end();
    } catch (const std::exception&) {
      if (!capture_ended_) leave_pool(/*is_entered=*/true);  // else the destructor does
      throw;
    }
  }

 private:
  // is_entered: it is known that the allocators were told of the capture, though maybe of its end as well.
  void leave_pool(bool is_entered) noexcept {
    if (capture_dev_ == UNDEFINED_DEVICE) return;  // it failed before
    namespace device_memory = c10::cuda::CUDACachingAllocator;
    const bool on_device = done([&] { device_memory::endAllocateToPool(capture_dev_, mempool_id_); });
    if (on_device || is_entered) done([&] { device_memory::releasePool(capture_dev_, mempool_id_); });
    const bool on_host = done([&] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(mempool_id_); });
    if (on_host || is_entered) done([&] { at::getHostAllocator(at::kCUDA)->release_pool(mempool_id_); });
  }
  // False where it refuses: there is nothing to undo.
  template <typename Call>
  static bool done(const Call& call) noexcept {
    try {
      call();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
};

// A capture that is under way, and ends whatever happens: else the stream could never be used again.
class Capture {
 public:
  Capture(Graph& graph, c10::MempoolId_t pool) : graph_(graph) { graph_.begin(pool); }
  void end() {
    is_open_ = false;
    graph_.end();
  }
  ~Capture() {
    if (!is_open_) return;
    try {
      graph_.end();
    } catch (const std::exception&) {
      return;  // what ended the work says more
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Graph& graph_;
  bool is_open_ = true;
};

class CapturedGraph final : public DeviceGraph {
 public:
  CapturedGraph(c10::DeviceIndex device, const std::function<void()>& work, const CapturedGraph* beside)
      : place_(beside != nullptr ? beside->place_ : make_place(device)) {
    const c10::cuda::CUDAGuard on_device(device);
    const c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream(device);
    before.synchronize();
    // A pool cannot take what eager steps have left in reserve, and during a capture nothing is given back.
    c10::cuda::CUDACachingAllocator::emptyCache();
    {
      const c10::cuda::CUDAStreamGuard on_stream(place_->stream);
      Capture capture(graph_, place_->pool);
      work();
      capture.end();
    }
    at::cuda::CUDAEvent captured;
    captured.record(place_->stream);
    captured.block(before);
  }
  void replay() override { graph_.replay(); }

 private:
  std::shared_ptr<const Place> place_;
  Graph graph_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) DeviceGraph* sdtune_capture_graph(std::int32_t device,
                                                                                    const std::function<void()>& work,
                                                                                    const DeviceGraph* beside) {
  return new CapturedGraph(static_cast<c10::DeviceIndex>(device), work, static_cast<const CapturedGraph*>(beside));
}
