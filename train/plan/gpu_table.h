// The GPUs that a plan is priced for: a YAML file that users edit, configs/gpus.yaml as it comes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sdtune::train {

// A step that was timed.
struct MeasuredStep {
  std::string model;            // sd15, sd21, sdxl, or the name of a model's folder
  std::string method;           // full, lora
  std::int64_t resolution = 0;  // px
  std::int64_t batch = 0;       // photos of a step
  double seconds_per_step = 0;
  bool class_images = false;  // as many of them beside the photos: with_prior_preservation
};

struct GpuOffer {
  std::string name;
  double memory_gib = 0;
  double tflops = 0;  // 10^12 a second, dense, of bfloat16 and float16
  double price_per_hour = 0;
  double utilisation = 0;  // share of tflops that training gets
  std::vector<MeasuredStep> measured;

  std::int64_t memory_bytes() const;
};

struct GpuTable {
  std::string currency;
  double float32_slowdown = 1;        // how many times longer float32 takes
  double least_seconds_per_step = 0;  // launches take their time however little there is to do
  std::vector<GpuOffer> offers;
};

// Throws ConfigError with file:line and key for whatever is missing, unknown, no number or out of range.
GpuTable read_gpu_table(const std::filesystem::path& path);

}  // namespace sdtune::train
