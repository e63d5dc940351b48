#include "train/tune/implementation_times.h"

#include <array>
#include <cmath>
#include <string_view>

#include "model/kernels/matrix_product.h"
#include "model/products/cpu_vectors.h"

namespace sdtune::train {
namespace {

using model::CpuChoice;
using model::CpuImplementation;

// Its other value would change nothing.
bool has_no_alternative(const CpuChoice& choice) {
  const std::string_view name = choice.name;
  const bool is_by_onednn = name == "products" || name == "convolutions_bfloat16";
  const bool is_by_pairs = name.starts_with("attention") && name.ends_with("bfloat16");
  const bool is_by_vectors = name == "attention_heads" || name == "attention_causal" || name == "small_products" ||
                             name == "convolutions_3x3_kernels";
  return (is_by_onednn && !model::can_multiply_by_onednn()) || (is_by_pairs && !model::can_multiply_bfloat16_pairs()) ||
         (is_by_vectors && !model::vectors_of_this_cpu());
}

struct Medians {
  double image = 0, step = 0;
};

// Of some implementations that take turns; unset when `stop` ended it.
std::optional<std::array<Medians, 2>> time_in_turns(const TimingPlan& plan, const TunedFormats& formats,
                                                    const std::array<CpuImplementation, 2>& implementations,
                                                    ImageClock& images, const PortraitReaderSource& readers,
                                                    StopFlag& stop) {
  std::array<std::vector<double>, 2> image_times, step_times;
  for (int round = 0; round < plan.rounds; ++round) {
    for (std::size_t i = 0; i < implementations.size(); ++i) {
      if (stop.signal() != 0) return std::nullopt;
      const model::CpuImplementationScope scope(implementations[i]);
      image_times[i].push_back(images.time_one());
      const std::optional<double> step = time_step(plan, formats.train, readers, stop);
      if (!step) return std::nullopt;
      step_times[i].push_back(*step);
    }
  }
  return std::array{Medians{median(image_times[0]), median(step_times[0])},
                    Medians{median(image_times[1]), median(step_times[1])}};
}

}  // namespace

bool is_of_no_format(const CpuChoice& choice, const TunedFormats& formats) {
  return std::string_view(choice.name).ends_with("bfloat16") && formats.sample == "float32" &&
         formats.train == "float32";
}

bool is_faster(double image_ratio, double step_ratio, double least_gain) {
  return std::sqrt(image_ratio * step_ratio) < 1 - least_gain;
}

std::optional<TunedImplementation> choose_implementation(const TimingPlan& plan, const TunedFormats& formats,
                                                         double least_gain, const PortraitReaderSource& readers,
                                                         StopFlag& stop) {
  TunedImplementation tuned{model::default_cpu_implementation(), {}};
  ImageClock images(plan, formats.sample);
  for (const CpuChoice& choice : model::kCpuChoices) {
    if (has_no_alternative(choice) || is_of_no_format(choice, formats)) continue;
    CpuImplementation other = tuned.fastest;
    other.*choice.is_first = !(other.*choice.is_first);
    const std::string value(choice.value_in(other));
    if (plan.on_line) plan.on_line(std::string(choice.name) + " " + value);
    const auto times = time_in_turns(plan, formats, {tuned.fastest, other}, images, readers, stop);
    if (!times) return std::nullopt;
    const auto& [fastest, tried] = *times;
    ImplementationTimes result{choice.name, value, tried.image / fastest.image, tried.step / fastest.step, false};
    result.is_taken = is_faster(result.image_ratio, result.step_ratio, least_gain);
    if (result.is_taken) tuned.fastest = other;
    tuned.tried.push_back(std::move(result));
  }
  return tuned;
}

}  // namespace sdtune::train
