#include "train/tune/format_times.h"

#include <array>
#include <map>
#include <optional>
#include <stdexcept>

namespace sdtune::train {
namespace {

constexpr std::array kFormats = {"float32", "bfloat16"};

}  // namespace

std::vector<FormatTimes> time_formats(const TimingPlan& plan, const PortraitReaderSource& readers, StopFlag& stop) {
  std::map<std::string, std::vector<double>> images, steps;
  std::map<std::string, ImageClock> clocks;
  for (const char* format : kFormats) clocks.try_emplace(format, plan, format);
  for (int round = 1; round <= plan.rounds; ++round) {
    const std::string of = "round " + std::to_string(round) + " of " + std::to_string(plan.rounds) + ", ";
    for (const char* format : kFormats) {
      if (stop.signal() != 0) return {};
      if (plan.on_line) plan.on_line(of + format);
      images[format].push_back(clocks.at(format).time_one());
      const std::optional<double> step = time_step(plan, format, readers, stop);
      if (!step) return {};
      steps[format].push_back(*step);
    }
  }
  std::vector<FormatTimes> times;
  for (const char* format : kFormats) times.push_back({format, median(images[format]), median(steps[format])});
  return times;
}

std::string fastest_format(const std::vector<FormatTimes>& times, double FormatTimes::*seconds, double least_gain) {
  const FormatTimes* exact = nullptr;
  const FormatTimes* best = nullptr;
  for (const FormatTimes& each : times) {
    if (each.dtype == "float32") exact = &each;
    if (best == nullptr || each.*seconds < best->*seconds) best = &each;
  }
  if (best == nullptr || exact == nullptr) throw std::logic_error("float32 was not timed");
  return best->*seconds < (1 - least_gain) * (exact->*seconds) ? best->dtype : exact->dtype;
}

}  // namespace sdtune::train
