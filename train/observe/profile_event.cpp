#include "train/observe/profile_event.h"

#include <fmt/format.h>

#include <algorithm>

namespace sdtune::train {

std::string profile_text(const ProfileEvent& event, std::size_t most_operators) {
  const double steps = static_cast<double>(std::max<std::int64_t>(event.steps, 1));
  const auto share = [&](double seconds) { return event.seconds > 0 ? 100 * seconds / event.seconds : 0; };
  std::string text = fmt::format("steps {} to {}, {:.1f} ms each\n", event.first_step,
                                 event.first_step + event.steps - 1, 1e3 * event.seconds / steps);
  for (const PhaseTotal& phase : event.phases) text += fmt::format("{:5.1f} %  {}\n", share(phase.seconds), phase.name);
  text += "\n share      ms a step    calls   GFLOP/s  operator\n";
  for (std::size_t i = 0; i < std::min(most_operators, event.operators.size()); ++i) {
    const OperatorTotal& one = event.operators[i];
    const bool has_rate = one.flops > 0 && one.seconds > 0 && !event.is_of_launches;
    const std::string rate = has_rate ? fmt::format("{:.0f}", 1e-9 * one.flops / one.seconds) : "-";
    text += fmt::format("{:5.1f} %  {:12.3f} {:8.0f} {:>9}  {}\n", share(one.seconds), 1e3 * one.seconds / steps,
                        static_cast<double>(one.calls) / steps, rate, one.name);
  }
  return text;
}

}  // namespace sdtune::train
