// What the checks of kernels share. They run on a GPU (scripts/prove.sh), and on the CPU where tests/gpu/host
// stands for CUDA; without LibTorch and GoogleTest, since a rented machine may have neither.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/core/cuda_table.h"
#include "train/optim/optimizer_table.h"

extern "C" const sdtune::model::CudaTable* sdtune_cuda_table();
extern "C" const sdtune::train::OptimizerTable* sdtune_optimizer_table();

namespace sdtune::test {

// One line for a group of comparisons: the worst error, what is allowed, and what the least wrong mutant gives.
class Check {
 public:
  explicit Check(std::string name) : name_(std::move(name)) {}
  ~Check();
  Check(const Check&) = delete;

  // |got - want| / |want| over all numbers at most `allowed`; with every second number of `want` off by `mutant` of it,
  // the same comparison must fail. `of` names the case in the line of a failure.
  void near(const std::string& of, const std::vector<float>& got, const std::vector<double>& want, double allowed,
            double mutant = 0.01);
  void equal(const std::string& of, bool is_equal);

 private:
  void fail(const std::string& line);

  std::string name_;
  int comparisons_ = 0, failures_ = 0;
  double worst_ = 0, of_worst_ = 0;  // error and allowed where their ratio is largest
};
int failed_checks();

void require(cudaError_t status);

// Memory of the device, between guards whose bytes must stay 0xFF (a NaN, should a kernel read them).
class DeviceMemory {
 public:
  DeviceMemory(const void* host, std::size_t bytes, std::size_t misalignment = 0);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  void* data() { return memory_ + kGuard + misalignment_; }
  void read(void* to, std::size_t bytes) const;

 private:
  static constexpr std::size_t kGuard = 256;
  char* memory_ = nullptr;
  std::size_t bytes_, misalignment_;
};

template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& host, std::size_t misalignment = 0)
      : size_(host.size()), memory_(host.data(), host.size() * sizeof(T), misalignment) {}
  T* data() { return static_cast<T*>(memory_.data()); }
  std::vector<T> host() const {
    std::vector<T> out(size_);
    memory_.read(out.data(), size_ * sizeof(T));
    return out;
  }

 private:
  std::size_t size_;
  DeviceMemory memory_;
};

// Numbers rounded to a type, and their bytes on the device. `misalignment` in elements.
class TypedVector {
 public:
  TypedVector(const std::vector<float>& numbers, model::CudaType type, std::size_t misalignment = 0);
  void* data() { return memory_.data(); }
  std::vector<float> host() const;  // as float32

 private:
  model::CudaType type_;
  std::size_t size_;
  DeviceMemory memory_;
};

std::vector<float> rounded(const std::vector<float>& numbers, model::CudaType type);
std::vector<float> random_numbers(std::size_t count, unsigned seed, float scale = 1.0f, float shift = 0.0f);
std::vector<double> to_double(const std::vector<float>& numbers);
const char* name_of(model::CudaType type);
inline constexpr model::CudaType kTypes[] = {model::CudaType::kFloat32, model::CudaType::kBFloat16,
                                             model::CudaType::kFloat16};
// What rounding once to the type costs, with room for a factor of `times`.
double rounding(model::CudaType type, double times);

// The chunks that parameters of these sizes are cut into.
std::vector<train::CudaChunk> chunks_of(const std::vector<std::int64_t>& counts);

inline constexpr model::CudaStream kStream{nullptr, 0};

void check_random();
void check_group_norm();
void check_geglu();
void check_adamw();
void check_adamw_8bit();
void check_gradient_norm();
void check_launch();

}  // namespace sdtune::test
