// What the profile of some optimizer steps found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sdtune::train {

struct OperatorTotal {
  std::string name;    // aten::convolution_backward, ...
  double seconds = 0;  // without operators that it calls and that are counted; on a GPU the time of its launch
  std::int64_t calls = 0;
  double flops = 0;  // 2 a multiply-add; 0 for what only moves or combines single numbers
};

struct PhaseTotal {
  std::string name;    // load batch, forward, backward, ...
  double seconds = 0;  // with everything that runs in it
};

struct ProfileEvent {
  std::int64_t first_step = 0;  // counted from 1
  std::int64_t steps = 0;
  double seconds = 0;                    // of these steps
  bool is_of_launches = false;           // on a GPU, whose kernels run on behind them: no rate follows from the times
  std::vector<PhaseTotal> phases;        // in the order of a step
  std::vector<OperatorTotal> operators;  // the longest first
  std::filesystem::path trace;           // for the viewers of Chrome and Perfetto
};

// As operators.txt has it: the steps, each phase's share of them, and at most so many operators.
std::string profile_text(const ProfileEvent& event, std::size_t most_operators);

}  // namespace sdtune::train
