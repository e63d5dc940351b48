#include "app/ui/progress_bar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "model/base/printable.h"

namespace sdtune::app {
namespace {

std::string count_text(std::int64_t count) {
  const auto value = static_cast<double>(count);
  if (count >= 1000000000) return fmt::format("{:.2f} G", value / 1e9);
  if (count >= 1000000) return fmt::format("{:.1f} M", value / 1e6);
  return count >= 1000 ? fmt::format("{:.1f} k", value / 1e3) : std::to_string(count);
}

// The system's description, which may begin with the device itself: "cpu (Intel ..., 2 threads)".
std::string device_text(const train::RunSummary& summary) {
  if (summary.device_name.empty() || summary.device_name.starts_with(summary.device)) {
    return summary.device_name.empty() ? summary.device : summary.device_name;
  }
  return summary.device + " (" + summary.device_name + ")";
}

std::string images_text(const train::RunSummary& summary) {
  std::string text = std::to_string(summary.images) + " of " + std::to_string(summary.resolution) + " px";
  if (summary.left_out > 0) text += ", " + std::to_string(summary.left_out) + " files left out";
  if (summary.class_images > 0) text += ", and " + std::to_string(summary.class_images) + " class images";
  return text;
}

std::string steps_text(const train::RunSummary& summary) {
  std::string text = std::to_string(summary.total_steps) + ", batch " + std::to_string(summary.batch);
  if (summary.ranks > 1) text += " on " + std::to_string(summary.ranks) + " ranks";
  if (summary.first_step > 0) text += ", resumed after step " + std::to_string(summary.first_step);
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{:02}:{:02}", whole / 60, whole % 60);
}

void ProgressBar::on_preparation(const train::PreparationEvent& event) {
  if (!event.preset.empty()) line_.message("preset   " + event.preset);
  for (const std::string& line : event.generation) line_.message("generate " + line);
}

void ProgressBar::on_generation(const train::GenerationEvent& event) {
  line_.message("time     about " + duration_text(event.seconds) + " for " + std::to_string(event.images) +
                fmt::format(" class images ({:.3g} s each)", event.seconds / static_cast<double>(event.images)));
}

void ProgressBar::on_start(const train::RunSummary& summary) {
  first_step_ = summary.first_step;
  line_.message("model    " + printable(summary.base) + " (" + summary.pipeline_class + ")");
  line_.message(fmt::format("trains   {} ({}", fmt::join(summary.components, ", "), summary.method) +
                "): " + count_text(summary.trainable_parameters) + " of " + count_text(summary.total_parameters) +
                " parameters");
  line_.message("device   " + device_text(summary) + ", " + summary.dtype);
  line_.message("images   " + images_text(summary));
  line_.message("steps    " + steps_text(summary));
  line_.message("seed     " + std::to_string(summary.seed));
  line_.message("output   " + summary.output.string());
  // Folders, which may come with a data set, stand in them by name.
  for (const std::string& note : summary.notes) line_.message("note     " + printable(note));
}

void ProgressBar::on_phase(const std::string& name, std::int64_t done, std::int64_t total) {
  if (done == 0 && total == 0) {
    line_.update(name, true);  // only that it begins is known
  } else {
    line_.update_bar(name, done, total, "", done == 0);
  }
}

void ProgressBar::on_estimate(const train::EstimateEvent& event) {
  line_.message("time     about " + duration_text(event.seconds_per_step * static_cast<double>(event.steps_left)) +
                " for the " + std::to_string(event.steps_left) + " steps left" +
                fmt::format(" ({:.3g} s each, without checkpoints and images)", event.seconds_per_step));
}

void ProgressBar::on_step(const train::StepEvent& event) {
  std::string tail = fmt::format("loss {:.4g}  lr {:.3g}  {:.3g} photos/s", event.loss, event.lr, event.images_per_s);
  const std::int64_t done_here = event.step - first_step_;
  if (done_here > 0) {
    const double per_step = event.elapsed / static_cast<double>(done_here);
    tail += "  ETA " + duration_text(per_step * static_cast<double>(event.total_steps - event.step));
  }
  if (event.skipped) tail += "  (skipped: fp16 overflow)";
  line_.update_bar("step", event.step, event.total_steps, tail, event.step == event.total_steps);
}

void ProgressBar::on_validation(const train::ValidationEvent& event) {
  if (!event.loss) return;
  line_.message("validation loss " + fmt::format("{:.4f}", *event.loss) + " after step " + std::to_string(event.step));
}

void ProgressBar::on_identity(const train::IdentityEvent& event) {
  line_.message(fmt::format("likeness {:.2f}, prompt fidelity {:.0f} %, leakage {:.0f} % after step ", event.identity,
                            100 * event.prompt_fidelity, 100 * event.leak) +
                std::to_string(event.step) + (event.is_best ? " (best so far)" : ""));
}

void ProgressBar::on_checkpoint(const train::CheckpointEvent& event) {
  line_.message("saved    " + event.path.string() + " in " + fmt::format("{:.1f} s", event.seconds));
}

void ProgressBar::on_profile(const train::ProfileEvent& event) {
  line_.message("profile  " + profile_text(event, 10) +
                (event.trace.empty() ? "" : "trace    " + event.trace.string()));
}

void ProgressBar::on_warning(const Problem& problem) {
  line_.message("sdtune: warning: " + problem.line());
}

void ProgressBar::on_end(const train::EndEvent& event) {
  line_.finish();
  const std::string after = " after step " + std::to_string(event.step) + ", " + duration_text(event.seconds);
  if (event.end == train::RunEnd::kDone) {
    const bool is_last = event.model_step == event.step;
    std::string text = "done" + after;
    if (!is_last) {
      text += "; the model is that of step " + std::to_string(event.model_step) + ", the best identity evaluation";
    }
    if (event.is_partial) text += "; " + event.cause + ", --resume-from-checkpoint latest resumes";
    line_.message(text);
  }
  if (event.end == train::RunEnd::kStopped) {
    const bool began = event.step > 0 || !event.checkpoint.empty();
    line_.message("stopped" + (began ? after : " before the first step") +
                  (event.cause.empty() ? "" : " by " + event.cause) +
                  (began ? "; state saved, --resume-from-checkpoint latest resumes" : "; start it again"));
  }
  if (event.end == train::RunEnd::kFailed) {
    line_.message("failed" + (event.step > 0 ? after : " before the first step"));
  }
}

}  // namespace sdtune::app
