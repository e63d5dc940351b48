#include <stdexcept>

#include "tests/gpu/checks.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;

std::string error_of(const CudaStream& stream, std::int64_t row_size) {
  DeviceVector<float> out(std::vector<float>(4));
  DeviceVector<std::uint32_t> words(std::vector<std::uint32_t>(5));
  try {
    sdtune_cuda_table()->philox_normal(out.data(), 1, row_size, words.data(), stream);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

template <typename Call>
bool is_refused(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

}  // namespace

// The device of a launch, and what is refused before one.
void check_launch() {
  Check check("launch");
  int before = -1, after = -1;
  require(cudaGetDevice(&before));
  check.equal("on the current device", error_of({nullptr, before}, 4).empty());
  const std::string error = error_of({nullptr, 99}, 4);
  for (const char* part : {"kernel philox_normal on cuda:99, grid 1 x 1 x 1: ", "invalid device ordinal"}) {
    check.equal(error + " names " + part, error.find(part) != std::string::npos);
  }
  require(cudaGetDevice(&after));
  check.equal("the former device is current again", before == after);
  check.equal("a later launch works", error_of({nullptr, before}, 4).empty());

  const CudaTable& table = *sdtune_cuda_table();
  check.equal("rows", is_refused([&] { table.philox_normal(nullptr, 65536, 1, nullptr, kStream); }));
  check.equal("2^31 numbers", is_refused([&] {
                table.geglu_forward(nullptr, nullptr, 1 << 15, 1 << 15, CudaType::kFloat32, kStream);
              }));
  for (const CudaGroupNorm& shape :
       {CudaGroupNorm{1, 1 << 16, 1 << 15, 256, 1e-5f, false, true}, CudaGroupNorm{1, 514, 4, 2, 1e-5f, false, true},
        CudaGroupNorm{1, 10, 4, 3, 1e-5f, false, false}}) {
    check.equal("shape of " + std::to_string(shape.channels) + " channels",
                is_refused([&] { table.group_norm_forward({}, shape, CudaType::kFloat32, kStream); }));
  }
}

}  // namespace sdtune::test
