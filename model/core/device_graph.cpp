#include "model/core/device_graph.h"

#include <utility>

#include "model/core/cuda_library.h"

namespace sdtune::model {

namespace {

GraphStandIn::Capture graph_stand_in;

}  // namespace

std::unique_ptr<DeviceGraph> capture_graph(torch::Device device, const std::function<void()>& work,
                                           const DeviceGraph* beside) {
  if (graph_stand_in) return graph_stand_in(work, beside);
  TORCH_CHECK(device.is_cuda(), "capture_graph: no graphs on device ", device);
  const auto capture = reinterpret_cast<CaptureFunction>(cuda_symbol(kCaptureSymbol));
  return std::unique_ptr<DeviceGraph>(capture(device.has_index() ? device.index() : 0, work, beside));
}

GraphStandIn::GraphStandIn(Capture capture) {
  TORCH_CHECK(!graph_stand_in, "GraphStandIn: one at a time");
  graph_stand_in = std::move(capture);
}

GraphStandIn::~GraphStandIn() {
  graph_stand_in = nullptr;
}

}  // namespace sdtune::model
