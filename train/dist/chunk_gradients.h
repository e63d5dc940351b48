// What several backwards that run at the same time (model/core/chunk_threads.h) bring for the same parameters. Autograd
// would let two threads add to one gradient; here each chunk's waits until those of all have come.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace sdtune::train {

class ChunkGradients {
 public:
  // One parameter's gradients, in the order of the chunks. Called by the thread of the chunk that came last.
  using Take = std::function<void(std::size_t index, const std::vector<torch::Tensor>& gradients)>;

  ChunkGradients(std::vector<torch::Tensor> weights, Take take);
  ~ChunkGradients();  // removes the hooks
  ChunkGradients(const ChunkGradients&) = delete;
  ChunkGradients& operator=(const ChunkGradients&) = delete;

  // Before so many backwards, each of which meets a parameter once; with 1 autograd keeps its gradients itself. Drops
  // what waits of a step that was given up. Installs a hook on each leaf where there are several for the first time;
  // none may be there.
  void begin(std::int64_t chunks);
  // After them: hands over what waits, since a chunk whose loss does not depend on a parameter brings no gradient.
  void finish();

 private:
  friend class ChunkHook;
  struct Waiting {
    std::vector<torch::Tensor> gradients;  // by chunk
    std::int64_t count = 0;
  };
  void add(std::size_t index, const torch::Tensor& gradient);
  void hand_over(std::size_t index);

  std::vector<torch::Tensor> weights_;
  Take take_;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;  // by parameter
  std::int64_t chunks_ = 1;
  bool is_hooked_ = false;
};

// Their sum in memory of its own: autograd may hand out one tensor as the gradient of two parameters.
torch::Tensor sum_of_chunks(const std::vector<torch::Tensor>& gradients);

}  // namespace sdtune::train
