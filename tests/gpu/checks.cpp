#include "tests/gpu/checks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace sdtune::test {

namespace {

int failures_of_all = 0;

std::size_t bytes_of(model::CudaType type) {
  return type == model::CudaType::kFloat32 ? 4 : 2;
}

// The nearest number with `fraction` bits behind the leading one, ties to even, not below 2^least in its last bit.
double round_to(double number, int fraction, int least) {
  if (number == 0 || !std::isfinite(number)) return number;
  int exponent = 0;
  std::frexp(number, &exponent);
  const int last = std::max(exponent - 1 - fraction, least);
  return std::ldexp(std::nearbyint(std::ldexp(number, -last)), last);
}

float round_to(float number, model::CudaType type) {
  if (type == model::CudaType::kBFloat16) return static_cast<float>(round_to(double{number}, 7, -133));
  if (type != model::CudaType::kFloat16) return number;
  const double rounded = round_to(double{number}, 10, -24);
  return std::abs(rounded) > 65504 ? std::copysign(INFINITY, number) : static_cast<float>(rounded);
}

// The bits of a number that the type has exactly.
std::uint16_t bits_of(float number, model::CudaType type) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (type == model::CudaType::kBFloat16) return static_cast<std::uint16_t>(bits >> 16);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  if (!std::isfinite(number)) return static_cast<std::uint16_t>(sign | (std::isnan(number) ? 0x7E00u : 0x7C00u));
  if (std::abs(number) < 0x1p-14f) {
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::ldexp(std::abs(number), 24)));
  }
  return static_cast<std::uint16_t>(sign | (((bits & 0x7FFFFFFFu) - 0x38000000u) >> 13));
}

float number_of(std::uint16_t bits, model::CudaType type) {
  if (type == model::CudaType::kBFloat16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  float magnitude = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                   : std::ldexp(static_cast<float>(exponent == 0 ? fraction : fraction + 1024),
                                                std::max(exponent, 1) - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<char> bytes_of(const std::vector<float>& numbers, model::CudaType type) {
  std::vector<char> bytes(numbers.size() * bytes_of(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (type == model::CudaType::kFloat32) {
      std::memcpy(bytes.data() + i * 4, &numbers[i], 4);
      continue;
    }
    const std::uint16_t bits = bits_of(round_to(numbers[i], type), type);
    std::memcpy(bytes.data() + i * 2, &bits, 2);
  }
  return bytes;
}

double relative_error(const std::vector<float>& got, const std::vector<double>& want, double off) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double expected = want[i] * (i % 2 == 0 ? 1 + off : 1);
    difference += (got[i] - expected) * (got[i] - expected);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-300));
}

}  // namespace

Check::~Check() {
  std::printf("%-28s %s %d comparisons, worst error %.2e (allowed %.0e)\n", name_.c_str(),
              failures_ == 0 ? "ok  " : "FAIL", comparisons_, worst_, of_worst_);
  failures_of_all += failures_;
}

void Check::fail(const std::string& line) {
  if (++failures_ <= 5) std::printf("%s: %s\n", name_.c_str(), line.c_str());
}

void Check::near(const std::string& of, const std::vector<float>& got, const std::vector<double>& want, double allowed,
                 double mutant) {
  ++comparisons_;
  const double error = relative_error(got, want, 0), wrong = relative_error(got, want, mutant);
  if (of_worst_ == 0 || !(error / allowed <= worst_ / of_worst_)) worst_ = error, of_worst_ = allowed;
  char line[160];
  std::snprintf(line, sizeof(line), ": error %.2e (allowed %.0e), of the mutant %.2e", error, allowed, wrong);
  if (got.size() != want.size() || !(error <= allowed) || !(wrong > allowed)) fail(of + line);
}

void Check::equal(const std::string& of, bool is_equal) {
  ++comparisons_;
  if (!is_equal) fail(of + ": differs");
}

int failed_checks() {
  return failures_of_all;
}

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

DeviceMemory::DeviceMemory(const void* host, std::size_t bytes, std::size_t misalignment)
    : bytes_(bytes), misalignment_(misalignment) {
  std::vector<char> whole(bytes + misalignment + 2 * kGuard, '\xFF');
  if (bytes > 0) std::memcpy(whole.data() + kGuard + misalignment, host, bytes);
  require(cudaMalloc(&memory_, whole.size()));
  require(cudaMemcpy(memory_, whole.data(), whole.size(), cudaMemcpyHostToDevice));
}

DeviceMemory::~DeviceMemory() {
  std::vector<char> whole(bytes_ + misalignment_ + 2 * kGuard);
  require(cudaMemcpy(whole.data(), memory_, whole.size(), cudaMemcpyDeviceToHost));
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(kGuard + misalignment_);
  const auto end = begin + static_cast<std::ptrdiff_t>(bytes_);
  const auto is_guard = [](char byte) { return byte == '\xFF'; };
  if (!std::all_of(whole.begin(), begin, is_guard) || !std::all_of(end, whole.end(), is_guard)) {
    std::printf("FAIL a kernel wrote outside its memory of %zu bytes\n", bytes_);
    ++failures_of_all;
  }
  cudaFree(memory_);
}

void DeviceMemory::read(void* to, std::size_t bytes) const {
  require(cudaMemcpy(to, memory_ + kGuard + misalignment_, bytes, cudaMemcpyDeviceToHost));
}

TypedVector::TypedVector(const std::vector<float>& numbers, model::CudaType type, std::size_t misalignment)
    : type_(type),
      size_(numbers.size()),
      memory_(bytes_of(numbers, type).data(), numbers.size() * bytes_of(type), misalignment * bytes_of(type)) {}

std::vector<float> TypedVector::host() const {
  std::vector<char> bytes(size_ * bytes_of(type_));
  memory_.read(bytes.data(), bytes.size());
  std::vector<float> numbers(size_);
  for (std::size_t i = 0; i < size_; ++i) {
    std::uint16_t bits = 0;
    if (type_ == model::CudaType::kFloat32) {
      std::memcpy(&numbers[i], bytes.data() + i * 4, 4);
    } else {
      std::memcpy(&bits, bytes.data() + i * 2, 2);
      numbers[i] = number_of(bits, type_);
    }
  }
  return numbers;
}

std::vector<float> rounded(const std::vector<float>& numbers, model::CudaType type) {
  std::vector<float> out;
  for (const float number : numbers) out.push_back(round_to(number, type));
  return out;
}

std::vector<float> random_numbers(std::size_t count, unsigned seed, float scale, float shift) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(generator) * scale + shift;
  return numbers;
}

std::vector<double> to_double(const std::vector<float>& numbers) {
  return {numbers.begin(), numbers.end()};
}

const char* name_of(model::CudaType type) {
  return type == model::CudaType::kFloat32 ? "float32" : type == model::CudaType::kBFloat16 ? "bfloat16" : "float16";
}

double rounding(model::CudaType type, double times) {
  return times * (type == model::CudaType::kFloat32 ? 0x1p-24 : type == model::CudaType::kBFloat16 ? 0x1p-9 : 0x1p-12);
}

std::vector<train::CudaChunk> chunks_of(const std::vector<std::int64_t>& counts) {
  std::vector<train::CudaChunk> chunks;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    for (std::int64_t begin = 0; begin < counts[i]; begin += train::kChunkNumbers) {
      chunks.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(begin / train::kChunkNumbers)});
    }
  }
  return chunks;
}

}  // namespace sdtune::test
