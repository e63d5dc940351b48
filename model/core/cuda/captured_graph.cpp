// CUDA graphs, part of libsdtune_cuda.so because it links libtorch_cuda.
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "model/core/device_graph.h"

namespace {

using sdtune::model::DeviceGraph;

// A capture that is under way, and ends whatever happens: else the stream could never be used again.
class Capture {
 public:
  // Backward runs on a thread of autograd's own, and another may write a checkpoint: only this thread's calls are bound
  // by what a capture forbids.
  explicit Capture(at::cuda::CUDAGraph& graph) : graph_(graph) {
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  }
  void end() {
    is_open_ = false;
    graph_.capture_end();
  }
  ~Capture() {
    if (!is_open_) return;
    try {
      graph_.capture_end();
    } catch (const c10::Error&) {
      return;  // what ended the work says more
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  at::cuda::CUDAGraph& graph_;
  bool is_open_ = true;
};

class CapturedGraph final : public DeviceGraph {
 public:
  CapturedGraph(c10::DeviceIndex device, const std::function<void()>& work) {
    const c10::cuda::CUDAGuard on_device(device);
    const c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream(device);
    const c10::cuda::CUDAStream own =
        c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device);  // not the default one
    before.synchronize();
    {
      const c10::cuda::CUDAStreamGuard on_stream(own);
      Capture capture(graph_);
      work();
      capture.end();
    }
    at::cuda::CUDAEvent captured;
    captured.record(own);
    captured.block(before);
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) DeviceGraph* sdtune_capture_graph(std::int32_t device,
                                                                                    const std::function<void()>& work) {
  return new CapturedGraph(static_cast<c10::DeviceIndex>(device), work);
}
