#include "app/commands/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "train/config/preset.h"
#include "train/config/preset_memory.h"
#include "train/prepare/generation_summary.h"
#include "train/run/memory_use.h"

namespace sdtune::app {
namespace {

using train::MemoryPart;
using train::MemoryPhase;

class Text {
 public:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    add(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  void add(const std::string& line) { text_.append(line).append("\n"); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

double gigabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

// Three digits and a unit that suits them: "9.84T".
std::string scaled(double value) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g}{}", value, kUnits[unit]);
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string precision_text(const train::PlannedRun& run) {
  const auto name = [](const std::string& precision) { return precision == "no" ? "float32" : precision; };
  const std::string gpu = name(run.config.precision.mixed_precision), cpu = name(run.cpu_precision);
  return cpu.empty() || cpu == gpu ? gpu : gpu + " on a GPU and " + cpu + " on a CPU";
}

void add_run(Text& text, const train::RunPlan& plan) {
  const train::PlannedRun& run = plan.run;
  text.line("{}: {} training of {} parameters out of {}, {}, {} px, {}", run.model, run.config.run.method,
            scaled(static_cast<double>(run.trainable_parameters)), scaled(static_cast<double>(run.total_parameters)),
            precision_text(run), *run.config.data.resolution, run.config.optim.chosen_optimizer());
  const std::string to_generate = run.generated_class_images == run.class_images
                                      ? ""
                                      : fmt::format(" ({} to generate)", run.generated_class_images);
  text.line("{} photos, {} class images{}; {} steps of {} photos, {:.3g} epochs", run.photos, run.class_images,
            to_generate, run.total_steps, run.batch, run.epochs());
  if (run.ranks > 1) text.line("{} ranks, shard: {}; memory is of one rank", run.ranks, run.config.dist.shard);
  const std::string preset = train::preset_line(run.config);
  if (!preset.empty()) text.add("preset " + preset);
  for (const std::string& line : train::generation_summary(run.config)) text.add("generate " + line);
  text.line("work in FLOP: {} a step, {} in all (class images {}, validation and identity evaluation {})",
            scaled(plan.work.step), scaled(plan.work.total), scaled(plan.work.class_images),
            scaled(plan.work.evaluation_images));
}

void add_memory(Text& text, const train::RunPlan& plan) {
  text.line("\nmemory, GB                                    on a CPU   on a GPU");
  for (std::size_t i = 0; i < plan.on_cpu.phases.size(); ++i) {
    const MemoryPhase &cpu = plan.on_cpu.phases[i], &gpu = plan.on_gpu.phases.at(i);
    const bool is_highest = &cpu == &plan.on_cpu.highest();
    text.line("{:44} {:9.2f}  {:9.2f}{}", cpu.name, gigabytes(cpu.bytes()), gigabytes(gpu.bytes()),
              is_highest ? "  <- the most" : "");
    if (!is_highest) continue;
    std::map<std::string, std::int64_t> on_gpu;
    for (const MemoryPart& part : gpu.parts) on_gpu[part.name] = part.bytes;
    for (const MemoryPart& part : cpu.parts) {
      const auto found = on_gpu.find(part.name);
      if (found == on_gpu.end()) {
        text.line("  {:42} {:9.2f}", part.name, gigabytes(part.bytes));
      } else {
        text.line("  {:42} {:9.2f}  {:9.2f}", part.name, gigabytes(part.bytes), gigabytes(found->second));
      }
    }
  }
  text.line("activations kept for backward, by part of the model:");
  for (const MemoryPart& part : plan.activations) {
    text.line("  {:42} {:9.3f}", part.name, gigabytes(part.bytes));
  }
  if (const std::optional<train::PresetNeed> smaller = train::smaller_preset(plan.run.config)) {
    text.line("with --config {}, the preset for a GPU with 16 GB: {:.2f} on a GPU", smaller->preset,
              gigabytes(smaller->bytes));
  }
  for (const train::Saving& saving : plan.savings) {
    text.line("with {}: {:.2f} on a CPU, {:.2f} on a GPU", saving.options, gigabytes(saving.cpu_bytes),
              gigabytes(saving.gpu_bytes));
  }
}

void add_machine(Text& text, const train::RunPlan& plan, const std::optional<train::ProbedTimes>& probed) {
  const std::int64_t has = train::free_memory_bytes() + train::resident_bytes();
  if (plan.on_cpu.highest().bytes() > has) {
    text.line("\nthis machine has {:.2f} GB free: a run on its CPU does not fit", gigabytes(has));
  }
  if (!probed) return;
  if (const std::int64_t images = plan.run.generated_class_images; images > 0 && probed->class_image > 0) {
    text.line("\nthis machine: {} for {} class images, {:.3g} s each",
              duration(probed->class_image * static_cast<double>(images)), images, probed->class_image);
  }
  text.line("\nthis machine, from {} timed steps: {:.3g} s a step, {} in all, {:.2f} GB at most", probed->timed_steps,
            probed->step, duration(probed->total(plan)), gigabytes(probed->peak_bytes));
}

// "; fits with micro_batch: 1, or --config full_sd15_16gb.yaml"
std::string what_fits(const train::Rental& rental) {
  std::string text = rental.fits_with;
  if (!rental.fits_preset.empty()) text += (text.empty() ? "--config " : ", or --config ") + rental.fits_preset;
  return text.empty() ? "" : "; fits with " + text;
}

void add_rentals(Text& text, const std::vector<train::Rental>& rentals, const std::string& currency) {
  text.line("\nGPU             memory        time    {} a model   {} an epoch", currency, currency);
  bool any_estimated = false;
  for (const train::Rental& rental : rentals) {
    const double memory = gigabytes(rental.offer.memory_bytes());
    if (rental.fits) {
      text.line("{:14} {:5.1f} GB {:>11}{} {:12.3f} {:14.5f}", rental.offer.name, memory, duration(3600 * rental.hours),
                rental.is_measured ? "*" : " ", rental.price, rental.price_per_epoch);
      any_estimated = any_estimated || !rental.is_measured;
    } else {
      text.line("{:14} {:5.1f} GB  does not fit: {}{}", rental.offer.name, memory, rental.why_not, what_fits(rental));
    }
  }
  if (any_estimated) {
    text.line("times without * are estimates from the work and an assumed utilisation of the GPU, not measurements");
  }
}

}  // namespace

std::string plan_text(const train::RunPlan& plan, const std::vector<train::Rental>& rentals,
                      const std::string& currency, const std::optional<train::ProbedTimes>& probed) {
  Text text;
  add_run(text, plan);
  add_memory(text, plan);
  add_machine(text, plan, probed);
  add_rentals(text, rentals, currency);
  return text.take();
}

}  // namespace sdtune::app
