// NCCL's backend, part of libsdtune_cuda.so because it links libtorch_cuda.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/dist/backend.h"

namespace {

// How ProcessGroupNCCL treats errors. It reads these variables when it is made, and has no options for them.
//   BLOCKING_WAIT        no watchdog thread and no thread that watches the watchdog: either may end the process. That
//                        wait() would block does not matter, since train/dist/collectives.h polls and never calls it.
//   ASYNC_ERROR_HANDLING nothing aborts a communicator behind the host, so no half-done sum lets the device go on.
//   The others: no thread that survives may throw, dump or signal either.
constexpr std::pair<const char*, const char*> kSettings[] = {
    {"TORCH_NCCL_BLOCKING_WAIT", "1"},      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
    {"TORCH_NCCL_ENABLE_MONITORING", "0"},  {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0"},
    {"TORCH_NCCL_PROPAGATE_ERROR", "0"},    {"TORCH_NCCL_DESYNC_DEBUG", "0"},
    {"TORCH_NCCL_RETHROW_CUDA_ERRORS", "0"}};

// Sets them, whatever the user's environment says, and puts it back: a Python process may use NCCL otherwise.
class OwnSettings {
 public:
  OwnSettings() {
    for (const auto& [name, value] : kSettings) {
      const char* before = std::getenv(name);
      before_.emplace_back(before == nullptr ? std::nullopt : std::optional<std::string>(before));
      setenv(name, value, 1);
    }
  }
  ~OwnSettings() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (before_[i]) {
        setenv(kSettings[i].first, before_[i]->c_str(), 1);
      } else {
        unsetenv(kSettings[i].first);
      }
    }
  }
  OwnSettings(const OwnSettings&) = delete;
  OwnSettings& operator=(const OwnSettings&) = delete;

 private:
  std::vector<std::optional<std::string>> before_;
};

// Only the host keeps the time. NCCL's own limit would end an abort with an exception in a destructor.
constexpr std::chrono::hours kNoLimit{24 * 365};

}  // namespace

extern "C" __attribute__((visibility("default"))) c10d::Backend* sdtune_nccl_backend(
    const sdtune::train::BackendRequest& request) {
  const OwnSettings settings;
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = kNoLimit;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(request.store, static_cast<int>(request.rank),
                                                     static_cast<int>(request.world_size), options)
      .release();
}
