// Progress of a training run on stderr: a bar where a person reads along, else one plain line every 30 s.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "app/ui/progress_line.h"
#include "train/observe/observer.h"

namespace sdtune::app {

// "1:02:03", "02:03".
std::string duration_text(double seconds);

class ProgressBar : public train::Observer {
 public:
  explicit ProgressBar(std::FILE* stream) : line_(stream) {}
  // For tests: what the terminal would be, and the time.
  explicit ProgressBar(ProgressLine line) : line_(std::move(line)) {}

  void on_preparation(const train::PreparationEvent& event) override;
  void on_generation(const train::GenerationEvent& event) override;
  void on_start(const train::RunSummary& summary) override;
  void on_phase(const std::string& name, std::int64_t done, std::int64_t total) override;
  void on_estimate(const train::EstimateEvent& event) override;
  void on_step(const train::StepEvent& event) override;
  void on_checkpoint(const train::CheckpointEvent& event) override;
  void on_profile(const train::ProfileEvent& event) override;
  void on_validation(const train::ValidationEvent& event) override;
  void on_identity(const train::IdentityEvent& event) override;
  void on_warning(const Problem& problem) override;
  void on_end(const train::EndEvent& event) override;

 private:
  ProgressLine line_;
  std::int64_t first_step_ = 0;
};

}  // namespace sdtune::app
