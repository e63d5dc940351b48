// Copies between host and device that the host does not wait for.
#pragma once

#include <c10/core/Event.h>
#include <torch/types.h>

#include <optional>

namespace sdtune::model {

// `host` on `device`. To a GPU through pinned memory, which LibTorch keeps until the copy is over, so that the host
// goes on at once; what is there already, and a CPU, cost nothing.
torch::Tensor copy_to_device(const torch::Tensor& host, torch::Device device);

// A copy on the host that stays, in memory that a GPU reads and writes by itself. Waits for the device.
torch::Tensor keep_on_host(const torch::Tensor& source);

// A copy on the host of what a tensor holds once the device has come that far; on a CPU the tensor itself.
class HostCopy {
 public:
  explicit HostCopy(const torch::Tensor& source);
  // Whether it is there; on a CPU always. Never waits.
  bool ready() const;
  // Waits until it is.
  const torch::Tensor& wait() const;
  // Seconds of the device between two copies that are there; unset on a CPU.
  std::optional<double> seconds_after(const HostCopy& earlier) const;

 private:
  torch::Tensor copy_;
  std::optional<c10::Event> copied_;  // unset on a CPU
};

// What a device was asked for until this was made.
class QueuedWork {
 public:
  explicit QueuedWork(torch::Device device);
  // Waits until it is done; on a CPU it is.
  void wait() const;

 private:
  std::optional<c10::Event> done_;  // unset on a CPU
};

}  // namespace sdtune::model
