#include <cmath>
#include <memory>

#include "tests/gpu/checks.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;

struct Gradients {
  std::vector<std::vector<float>> numbers;
  std::size_t misalignment = 0;
};

float norm_of(const Gradients& gradients, CudaType type) {
  std::vector<std::unique_ptr<TypedVector>> memory;
  std::vector<train::CudaGradient> entries;
  std::vector<std::int64_t> counts;
  for (const std::vector<float>& numbers : gradients.numbers) {
    memory.push_back(std::make_unique<TypedVector>(numbers, type, gradients.misalignment));
    counts.push_back(static_cast<std::int64_t>(numbers.size()));
    entries.push_back({memory.back()->data(), counts.back()});
  }
  DeviceVector<train::CudaGradient> list(entries);
  const std::vector<train::CudaChunk> chunk_list = chunks_of(counts);
  const auto count = static_cast<std::int64_t>(chunk_list.size());
  DeviceVector<train::CudaChunk> chunks(chunk_list);
  DeviceVector<double> sums(std::vector<double>(chunk_list.size(), NAN));
  DeviceVector<float> norm({NAN});
  sdtune_optimizer_table()->gradient_squares(list.data(), chunks.data(), count, type, sums.data(), kStream);
  sdtune_optimizer_table()->gradient_norm(sums.data(), count, norm.data(), kStream);
  return norm.host()[0];
}

double reference(const Gradients& gradients) {
  double sum = 0;
  for (const std::vector<float>& numbers : gradients.numbers) {
    for (const float number : numbers) sum += double{number} * number;
  }
  return std::sqrt(sum);
}

}  // namespace

void check_gradient_norm() {
  Check check("gradient_norm");
  for (const CudaType type : kTypes) {
    Gradients gradients;
    unsigned seed = 0;
    for (const std::int64_t count : {1, 7, 8, 1001, 16384, 40007}) {
      gradients.numbers.push_back(rounded(random_numbers(static_cast<std::size_t>(count), ++seed), type));
    }
    for (int small = 0; small < 40; ++small) gradients.numbers.push_back(rounded(random_numbers(3, ++seed), type));
    for (gradients.misalignment = 0; gradients.misalignment < 2; ++gradients.misalignment) {
      check.near(name_of(type), {norm_of(gradients, type)}, {reference(gradients)}, 1e-7, 1e-6);
    }
    // One number that counts: the last of the largest, which a lost tail would miss.
    Gradients one = {{std::vector<float>(40007)}, 0};
    one.numbers[0].back() = 3;
    check.near("last number", {norm_of(one, type)}, {3}, 1e-7);
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      Gradients broken = gradients;
      broken.misalignment = 0;
      broken.numbers[5][40006] = bad;
      check.equal("not finite", !std::isfinite(norm_of(broken, type)));
    }
  }
  // Squares that leave float32.
  const Gradients large = {{{1e30f, 1e30f}}, 0};
  check.near("large", {norm_of(large, CudaType::kFloat32)}, {reference(large)}, 1e-7);
}

}  // namespace sdtune::test
