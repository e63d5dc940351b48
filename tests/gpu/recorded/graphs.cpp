// Graphs of the recorded GPU: what is asked for while one is captured is counted, and once more at each replay.
#include "model/core/device_graph.h"

namespace sdtune::record {

namespace {

class RecordedGraph final : public model::DeviceGraph {
 public:
  explicit RecordedGraph(std::function<void()> work) : work_(std::move(work)) { work_(); }
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

}  // namespace

}  // namespace sdtune::record

extern "C" __attribute__((visibility("default"))) sdtune::model::DeviceGraph* sdtune_capture_graph(
    std::int32_t, const std::function<void()>& work, const sdtune::model::DeviceGraph*) {
  return new sdtune::record::RecordedGraph(work);
}
