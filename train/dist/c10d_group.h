// Several ranks over a backend of c10d.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/dist/collectives.h"
#include "train/dist/process_group.h"

namespace sdtune::train {

class C10dGroup final : public ProcessGroup {
 public:
  struct Place {
    std::int64_t rank = 0;
    std::int64_t world_size = 1;
  };

  C10dGroup(const Place& place, std::unique_ptr<PeerWatch> peers,
            const std::function<Collectives::Backend()>& make_backend, const CollectiveRules& rules);

  std::int64_t rank() const override { return place_.rank; }
  std::int64_t world_size() const override { return place_.world_size; }
  std::unique_ptr<PendingReduce> start_all_reduce_sum(torch::Tensor tensor) override;
  void broadcast(torch::Tensor tensor, std::int64_t root) override;
  std::unique_ptr<PendingReduce> start_reduce_sum(torch::Tensor tensor, std::int64_t root) override;
  std::unique_ptr<PendingReduce> start_broadcast(torch::Tensor tensor, std::int64_t root) override;
  std::vector<torch::Tensor> gather_bytes(const torch::Tensor& mine, const std::vector<std::int64_t>& counts) override;
  void barrier() override;
  std::vector<std::string> gather_text(const std::string& text) override;
  void begin_step(std::int64_t step) override { collectives_.begin_step(step); }
  void check_before_update() override { collectives_.check_remembered(); }
  void settle() override { collectives_.finish_remembered(); }
  std::vector<CollectiveWait> take_waits() override { return collectives_.take_waits(); }
  void say_failure(const Error& error) override { peers_->say_failure(error); }

 private:
  class Pending;
  class PendingSum;
  // One tensor of each rank, on the CPU.
  std::vector<torch::Tensor> all_gather(const torch::Tensor& mine);
  Collectives::Work all_reduce(const char* doing, const torch::Tensor& tensor);
  // Sends `input` (one dimension) to rank `root`, whose `output` takes counts[r] numbers from rank r, in the order of
  // the ranks. Of the others `output` is empty and the counts are 0.
  Collectives::Work gather_to(std::int64_t root, const char* doing, const torch::Tensor& input,
                              const torch::Tensor& output, std::vector<std::int64_t> counts);
  Collectives::Work reduce_on_device(const torch::Tensor& tensor, std::int64_t root);
  Collectives::Work begin_broadcast(const torch::Tensor& tensor, std::int64_t root);

  Place place_;
  CollectiveRules rules_;
  std::unique_ptr<PeerWatch> peers_;
  Collectives collectives_;
};

}  // namespace sdtune::train
