// Work of a GPU that is recorded once and then replayed as a whole (CUDA graphs): the host asks for one thing instead
// of for thousands.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace sdtune::model {

class DeviceGraph {
 public:
  DeviceGraph() = default;
  virtual ~DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  // Does the work again, on the stream that LibTorch uses now, with what is then in the memory that the work read.
  // Tensors that it made are written anew. The host does not wait.
  virtual void replay() = 0;
};

// Runs `work` once on the host, so that its operators on `device` are recorded instead of done. `work` must not read
// the device or copy from memory of the host, and memory that it reads has to stay where it is. What it keeps of its
// tensors stays until the graph goes. Throws what `work` throws, and c10::Error where something cannot be recorded.
// `beside`, another graph of the device or null: the new one takes the same memory for what it does not keep, so the
// two must never run at the same time, and what a replay made must be read or copied before the other one's.
std::unique_ptr<DeviceGraph> capture_graph(torch::Device device, const std::function<void()>& work,
                                           const DeviceGraph* beside);

// The C symbol of libsdtune_cuda.so that does it; the caller owns the result.
inline constexpr const char* kCaptureSymbol = "sdtune_capture_graph";
using CaptureFunction = DeviceGraph* (*)(std::int32_t device, const std::function<void()>& work,
                                         const DeviceGraph* beside);

// For tests: while one lives, its function stands for a GPU's.
class GraphStandIn {
 public:
  using Capture =
      std::function<std::unique_ptr<DeviceGraph>(const std::function<void()>& work, const DeviceGraph* beside)>;
  explicit GraphStandIn(Capture capture);
  ~GraphStandIn();
  GraphStandIn(const GraphStandIn&) = delete;
  GraphStandIn& operator=(const GraphStandIn&) = delete;
};

}  // namespace sdtune::model
