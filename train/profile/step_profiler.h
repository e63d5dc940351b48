// The trace of some optimizer steps: PyTorch's profiler writes it in the format of Chrome's tracing, which Perfetto and
// TensorBoard's plugin open too.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "model/files/file_system.h"
#include "train/observe/step_lines.h"
#include "train/profile/operator_totals.h"

namespace sdtune::train {

class StepProfiler {
 public:
  // Profiles `steps` steps behind the first two of this attempt, which wait for caches. No step: does nothing.
  // What cannot be traced or written is told to `warn`: the run goes on.
  StepProfiler(FileSystem& files, std::filesystem::path folder, std::int64_t steps, c10::Device device, Warn warn);
  ~StepProfiler();
  StepProfiler(const StepProfiler&) = delete;
  StepProfiler& operator=(const StepProfiler&) = delete;

  // Around each step, counted from 0.
  void begin_step(std::int64_t step);
  // After the last profiled one as finish().
  std::optional<ProfileEvent> end_step();
  // At the end of training: writes FOLDER/trace.json and FOLDER/operators.txt of what was profiled, if it was not done,
  // and says what is in them.
  std::optional<ProfileEvent> finish();

 private:
  bool start();
  void stop();
  ProfileEvent sums() const;
  void write(const ProfileEvent& event);

  FileSystem& files_;
  std::filesystem::path folder_;
  std::int64_t left_, skipped_ = 0, first_ = 0, profiled_ = 0;
  c10::Device device_;
  Warn warn_;
  std::unique_ptr<OperatorTotals> totals_;  // while it is profiling
  std::unique_ptr<at::RecordFunction> step_;
};

}  // namespace sdtune::train
