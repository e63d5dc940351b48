#include "app/commands/plan_text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <map>

#include "train/run/memory_use.h"

namespace sdtune::app {
namespace {

using train::MemoryPart;
using train::MemoryPhase;

class Text {
 public:
  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) {
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    text_.append(buffer).append("\n");
  }
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
  char text[32];
  std::snprintf(text, sizeof text, "%.3g%s", value, kUnits[unit]);
  return text;
}

std::string duration(double seconds) {
  char text[32];
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld min", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld h", whole / 3600, whole / 60 % 60);
  }
  return text;
}

void add_run(Text& text, const train::RunPlan& plan) {
  const train::PlannedRun& run = plan.run;
  text.line("%s: %s training of %s parameters out of %s, %s, %lld px, %s", run.model.c_str(),
            run.config.run.method.c_str(), scaled(static_cast<double>(run.trained_parameters)).c_str(),
            scaled(static_cast<double>(run.total_parameters)).c_str(),
            run.config.precision.mixed_precision == "no" ? "float32" : run.config.precision.mixed_precision.c_str(),
            static_cast<long long>(*run.config.data.resolution), run.config.optim.chosen_optimizer().c_str());
  text.line("%lld photos, %lld class pictures; %lld steps of %lld photos, %.3g epochs",
            static_cast<long long>(run.photos), static_cast<long long>(run.class_images),
            static_cast<long long>(run.total_steps), static_cast<long long>(run.batch), run.epochs());
  text.line("work in FLOP: %s a step, %s in all (class pictures %s, looks %s)", scaled(plan.work.step).c_str(),
            scaled(plan.work.total).c_str(), scaled(plan.work.class_pictures).c_str(), scaled(plan.work.looks).c_str());
}

void add_memory(Text& text, const train::RunPlan& plan) {
  text.line("\nmemory, GB                                    on a CPU   on a GPU");
  for (std::size_t i = 0; i < plan.on_cpu.phases.size(); ++i) {
    const MemoryPhase &cpu = plan.on_cpu.phases[i], &gpu = plan.on_gpu.phases.at(i);
    const bool is_highest = &cpu == &plan.on_cpu.highest();
    text.line("%-44s %9.2f  %9.2f%s", cpu.name.c_str(), gigabytes(cpu.bytes()), gigabytes(gpu.bytes()),
              is_highest ? "  <- the most" : "");
    if (!is_highest) continue;
    std::map<std::string, std::int64_t> on_gpu;
    for (const MemoryPart& part : gpu.parts) on_gpu[part.name] = part.bytes;
    for (const MemoryPart& part : cpu.parts) {
      const auto found = on_gpu.find(part.name);
      if (found == on_gpu.end()) {
        text.line("  %-42s %9.2f", part.name.c_str(), gigabytes(part.bytes));
      } else {
        text.line("  %-42s %9.2f  %9.2f", part.name.c_str(), gigabytes(part.bytes), gigabytes(found->second));
      }
    }
  }
  text.line("activations kept for backward, by part of the model:");
  for (const MemoryPart& part : plan.activations) {
    text.line("  %-42s %9.3f", part.name.c_str(), gigabytes(part.bytes));
  }
  for (const train::Saving& saving : plan.savings) {
    text.line("with %s: %.2f on a CPU, %.2f on a GPU", saving.options.c_str(), gigabytes(saving.cpu_bytes),
              gigabytes(saving.gpu_bytes));
  }
}

void add_machine(Text& text, const train::RunPlan& plan, const std::optional<train::ProbedTimes>& probed) {
  const std::int64_t has = train::free_memory_bytes() + train::resident_bytes();
  if (plan.on_cpu.highest().bytes() > has) {
    text.line("\nthis machine has %.2f GB free: a run on its CPU does not fit", gigabytes(has));
  }
  if (!probed) return;
  text.line("\nthis machine, from %lld timed steps: %.3g s a step, %s in all, %.2f GB at most",
            static_cast<long long>(probed->timed_steps), probed->step, duration(probed->total(plan)).c_str(),
            gigabytes(probed->peak_bytes));
}

void add_rentals(Text& text, const std::vector<train::Rental>& rentals, const std::string& currency) {
  text.line("\nGPU             memory        time    %s a model   %s an epoch", currency.c_str(), currency.c_str());
  bool any_reckoned = false;
  for (const train::Rental& rental : rentals) {
    const double memory = gigabytes(rental.offer.memory_bytes());
    if (rental.fits) {
      text.line("%-14s %5.1f GB %11s%s %12.3f %14.5f", rental.offer.name.c_str(), memory,
                duration(3600 * rental.hours).c_str(), rental.is_measured ? "*" : " ", rental.price,
                rental.price_per_epoch);
      any_reckoned = any_reckoned || !rental.is_measured;
    } else {
      text.line("%-14s %5.1f GB  does not fit: %s%s", rental.offer.name.c_str(), memory, rental.why_not.c_str(),
                rental.fits_with.empty() ? "" : ("; fits with " + rental.fits_with).c_str());
    }
  }
  if (any_reckoned) {
    text.line("times without * are reckoned from the work and an assumed share of the GPU's speed, not measured");
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
