#include "train/plan/rental.h"

#include <gtest/gtest.h>

#include <fstream>

#include "model/base/error.h"
#include "model/files/install_paths.h"
#include "tests/support/scratch_folder.h"
#include "train/config/preset_memory.h"

namespace sdtune::train {
namespace {

std::filesystem::path table_of(const test::ScratchFolder& scratch, const std::string& text) {
  const std::filesystem::path path = scratch.path() / "gpus.yaml";
  std::ofstream(path) << text;
  return path;
}

constexpr const char* kTwo = R"(currency: EUR
utilisation: 0.5
float32_slowdown: 4
least_seconds_per_step: 0.01
gpus:
  - {name: Small, memory_gib: 8, tflops: 10, price_per_hour: 1}
  - name: Large
    memory_gib: 80
    tflops: 100
    price_per_hour: 6
    utilisation: 0.25
    measured: [{model: sd15, method: lora, resolution: 512, batch: 2, seconds_per_step: 3.6}]
)";

// A thousand steps of 10^12 operations, in 20 GB on a GPU.
RunPlan plan_of_20_gb() {
  RunPlan plan;
  plan.run.model = "sd15";
  plan.run.config.data.resolution = 512;
  plan.run.config.precision.mixed_precision = "bf16";
  plan.run.total_steps = 1000;
  plan.run.batch = 2;
  plan.run.epoch_photos = 20;
  plan.work = {.step = 1e12, .class_images = 5e14, .encoding = 0, .total = 1.5e15};
  plan.on_gpu.phases = {{"training", {{"gradients", 5'000'000'000}, {"states", 15'000'000'000}}}};
  plan.savings = {{"micro_batch: 1", 0, 15'000'000'000}, {"micro_batch: 1 and use_8bit_adam", 0, 7'000'000'000}};
  return plan;
}

TEST(Rental, EstimatesHoursAndPriceFromTheWork) {
  const test::ScratchFolder scratch;
  const GpuTable table = read_gpu_table(table_of(scratch, kTwo));
  EXPECT_EQ(table.currency, "EUR");
  const std::vector<Rental> rentals = price_run(plan_of_20_gb(), table);
  ASSERT_EQ(rentals.size(), 2u);
  const double seconds = 1.5e15 / (100e12 * 0.25);
  EXPECT_TRUE(rentals[1].fits);
  EXPECT_FALSE(rentals[1].is_measured);
  EXPECT_NEAR(rentals[1].hours * 3600, seconds, 1e-9);
  EXPECT_NEAR(rentals[1].price, 6 * seconds / 3600, 1e-12);
  EXPECT_NEAR(rentals[1].price_per_epoch, rentals[1].price / 100, 1e-12);  // 2000 photos shown, 20 an epoch
}

TEST(Rental, Float32IsSlowerAndNoStepIsQuickerThanItsLaunches) {
  const test::ScratchFolder scratch;
  const GpuTable table = read_gpu_table(table_of(scratch, kTwo));
  RunPlan plan = plan_of_20_gb();
  const double half = price_run(plan, table)[1].hours;
  plan.run.config.precision.mixed_precision = "no";
  EXPECT_NEAR(price_run(plan, table)[1].hours / half, 4, 1e-9);
  plan.run.config.precision.allow_tf32 = true;
  EXPECT_NEAR(price_run(plan, table)[1].hours / half, 2, 1e-9);
  plan.work = {.step = 1e6};
  EXPECT_NEAR(price_run(plan, table)[1].hours * 3600, 1000 * 0.01, 1e-9);
}

TEST(Rental, SaysWhyItDoesNotFitAndWhatWould) {
  const test::ScratchFolder scratch;
  const std::vector<Rental> rentals = price_run(plan_of_20_gb(), read_gpu_table(table_of(scratch, kTwo)));
  EXPECT_FALSE(rentals[0].fits);
  EXPECT_EQ(rentals[0].why_not, "training needs 20.0 GB, of which states 15.0 GB");
  EXPECT_EQ(rentals[0].fits_with, "micro_batch: 1 and use_8bit_adam");
}

// As `check` does, where the run leaves to its preset what decides the memory.
TEST(Rental, NamesThePresetOfASmallerGpu) {
  const test::ScratchFolder scratch;
  const std::string start = "currency: EUR\nutilisation: 0.5\ngpus:\n";
  const GpuTable table =
      read_gpu_table(table_of(scratch, start + "  - {name: A, memory_gib: 16, tflops: 1, price_per_hour: 1}\n"
                                               "  - {name: B, memory_gib: 8, tflops: 1, price_per_hour: 1}\n"));
  RunPlan plan = plan_of_20_gb();
  EXPECT_EQ(price_run(plan, table)[0].fits_preset, "");
  plan.run.config.preset = "/anywhere/full_sd15.yaml";
  EXPECT_EQ(price_run(plan, table)[0].fits_preset, "full_sd15_16gb.yaml");
  EXPECT_EQ(price_run(plan, table)[1].fits_preset, "");
  plan.run.config.origins["micro_batch"] = "/anywhere/full_sd15.yaml:3";
  EXPECT_EQ(price_run(plan, table)[0].fits_preset, "full_sd15_16gb.yaml");
  plan.run.config.origins["micro_batch"] = "--micro-batch";
  EXPECT_EQ(price_run(plan, table)[0].fits_preset, "");
}

// A card's last twentieth is not to be had.
TEST(Rental, WhatFillsACardDoesNotFit) {
  const test::ScratchFolder scratch;
  const GpuTable table = read_gpu_table(table_of(scratch, kTwo));
  RunPlan plan = plan_of_20_gb();
  const std::int64_t card = std::int64_t{8} << 30;
  plan.on_gpu.phases = {{"training", {{"gradients", usable_bytes(card)}}}};
  EXPECT_TRUE(price_run(plan, table)[0].fits);
  plan.on_gpu.phases = {{"training", {{"gradients", usable_bytes(card) + 1}}}};
  EXPECT_FALSE(price_run(plan, table)[0].fits);
  EXPECT_LT(usable_bytes(card), card);
}

TEST(Rental, PrefersAMeasuredStepOfTheSameRun) {
  const test::ScratchFolder scratch;
  RunPlan plan = plan_of_20_gb();
  plan.run.config.run.method = "lora";
  const std::vector<Rental> rentals = price_run(plan, read_gpu_table(table_of(scratch, kTwo)));
  EXPECT_TRUE(rentals[1].is_measured);
  EXPECT_NEAR(rentals[1].hours, 1.0 + 5e14 / (100e12 * 0.25) / 3600, 1e-9);
}

// As many class images as photos are computed in each step, about twice the work.
TEST(Rental, AStepWithClassImagesIsAnother) {
  const test::ScratchFolder scratch;
  std::string with_images = kTwo;
  with_images.insert(with_images.find("}]"), ", class_images: true");
  for (const bool has_images : {false, true}) {
    RunPlan plan = plan_of_20_gb();
    plan.run.config.run.method = "lora";
    plan.run.config.data.with_prior_preservation = has_images;
    EXPECT_EQ(price_run(plan, read_gpu_table(table_of(scratch, kTwo)))[1].is_measured, !has_images);
    EXPECT_EQ(price_run(plan, read_gpu_table(table_of(scratch, with_images)))[1].is_measured, has_images);
  }
}

TEST(GpuTable, TheOneThatComesIsRead) {
  const GpuTable table = read_gpu_table(find_shared_file("configs/gpus.yaml"));
  EXPECT_GE(table.offers.size(), 8u);
}

TEST(GpuTable, MistakesAreNamedWithFileAndLine) {
  const test::ScratchFolder scratch;
  const auto said = [&](const std::string& text) {
    try {
      read_gpu_table(table_of(scratch, text));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const std::string start = "currency: EUR\nutilisation: 0.5\ngpus:\n";
  EXPECT_NE(said(start + "  - {name: A, memory_gib: 8, tflops: 1, prise_per_hour: 1}\n")
                .find("gpus.yaml:4: has an unknown key prise_per_hour"),
            std::string::npos);
  EXPECT_NE(said(start + "  - {name: A, memory_gib: 8, tflops: -1, price_per_hour: 1}\n")
                .find("tflops is not allowed (got -1) (allowed: above 0, at most 10000000)"),
            std::string::npos);
  EXPECT_NE(said(start + "  - {name: A, tflops: 1, price_per_hour: 1}\n").find("lacks memory_gib"), std::string::npos);
  EXPECT_NE(said("currency: EUR\nutilisation: 0.5\ngpus: 3\n").find("gpus is no list"), std::string::npos);
  EXPECT_NE(said("currency: EUR\nutilisation: 0.5\n").find("lists no GPU"), std::string::npos);
  EXPECT_NE(said("- 1\n").find("is not a mapping"), std::string::npos);
}

}  // namespace
}  // namespace sdtune::train
