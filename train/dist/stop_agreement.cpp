#include "train/dist/stop_agreement.h"

#include <string>

namespace sdtune::train {

namespace {

// check_before_update() of step s has seen the sums of step s - 1 end. They began after the device had reached them,
// and so after the copy of step s - 2, which was queued before.
constexpr std::size_t kLagOfGpu = 2;

// Of votes in the order of the ranks: the first signal, else whether a budget is spent.
int with_vote(int agreed, int vote) {
  const bool is_signal = agreed != 0 && agreed != kBudgetSpent;
  return is_signal || vote == 0 ? agreed : vote;
}

}  // namespace

int StopAgreement::own_vote() const {
  if (const int signal = stop_.signal(); signal != 0) return signal;
  return is_spent_ && is_spent_() ? kBudgetSpent : 0;
}

torch::Tensor StopAgreement::sum(const torch::Tensor& numbers) {
  const std::int64_t ranks = group_.world_size();
  if (ranks == 1) {
    group_.all_reduce_sum(numbers);
    return numbers;
  }
  torch::Tensor mine = torch::zeros({ranks}, numbers.options());
  if (const int vote = own_vote(); vote != 0) mine.select(0, group_.rank()).fill_(vote);
  const torch::Tensor all = torch::cat({numbers, mine});
  group_.all_reduce_sum(all);
  const torch::Tensor votes = all.slice(0, numbers.numel());
  if (device_.is_cpu()) {
    votes_.push_back(votes);
  } else {
    votes_.push_back(torch::empty({ranks}, torch::dtype(votes.scalar_type()).pinned_memory(true)));
    votes_.back().copy_(votes, /*non_blocking=*/true);
  }
  return all.slice(0, 0, numbers.numel());
}

int StopAgreement::agreed() {
  if (group_.world_size() == 1) return own_vote();
  int agreed = 0;
  while (votes_.size() > (device_.is_cpu() ? 0 : kLagOfGpu)) {
    const torch::Tensor votes = votes_.front();
    votes_.pop_front();
    for (std::int64_t rank = 0; rank < votes.numel(); ++rank) {
      agreed = with_vote(agreed, static_cast<int>(votes.const_data_ptr<float>()[rank]));
    }
  }
  return agreed;
}

int StopAgreement::agreed_now() {
  if (group_.world_size() == 1) return own_vote();
  int agreed = 0;
  for (const std::string& vote : group_.gather_text(std::to_string(own_vote()))) {
    agreed = with_vote(agreed, std::stoi(vote));
  }
  return agreed;
}

}  // namespace sdtune::train
