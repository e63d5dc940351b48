#include "model/core/cpu_implementation.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace sdtune::model {
namespace {

constexpr CpuImplementation kOfLibraries{false, false, false, false, false, false, false,
                                         false, false, false, false, false, false, false};

int asked = 0;

CpuImplementation libraries_of_source() {
  ++asked;
  return kOfLibraries;
}

CpuImplementation broken_source() {
  throw std::runtime_error("no table");
}

class CpuImplementations : public testing::Test {
 protected:
  CpuImplementations() { asked = 0; }
  ~CpuImplementations() override { set_cpu_implementation_source(nullptr); }
  CpuImplementations(const CpuImplementations&) = delete;
  CpuImplementations& operator=(const CpuImplementations&) = delete;
};

TEST_F(CpuImplementations, ASourceIsAskedOnce) {
  EXPECT_EQ(cpu_implementation(), default_cpu_implementation());
  set_cpu_implementation_source(&libraries_of_source);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(cpu_implementation(), kOfLibraries);
  EXPECT_EQ(cpu_implementation(), kOfLibraries);
  EXPECT_EQ(asked, 1);
}

TEST_F(CpuImplementations, AScopeHoldsUntilItsEnd) {
  set_cpu_implementation_source(&libraries_of_source);
  CpuImplementation mixed = kOfLibraries;
  mixed.patch_convolutions = true;
  {
    const CpuImplementationScope outer(mixed);
    EXPECT_EQ(asked, 0);  // what is said is not looked up
    {
      const CpuImplementationScope inner(default_cpu_implementation());
      EXPECT_EQ(cpu_implementation(), default_cpu_implementation());
    }
    EXPECT_EQ(cpu_implementation(), mixed);
  }
  EXPECT_EQ(cpu_implementation(), kOfLibraries);
}

// As of two trainings on two threads.
TEST_F(CpuImplementations, ScopesMayEndInAnyOrder) {
  set_cpu_implementation_source(&libraries_of_source);
  CpuImplementation mixed = kOfLibraries;
  mixed.patch_convolutions = true;
  auto first = std::make_unique<CpuImplementationScope>(mixed);
  auto second = std::make_unique<CpuImplementationScope>(default_cpu_implementation());
  first.reset();
  EXPECT_EQ(cpu_implementation(), default_cpu_implementation());
  second.reset();
  EXPECT_EQ(cpu_implementation(), kOfLibraries);
}

TEST_F(CpuImplementations, ASourceThatFailsIsAskedAgain) {
  set_cpu_implementation_source(&broken_source);
  EXPECT_THROW(cpu_implementation(), std::runtime_error);
  EXPECT_THROW(cpu_implementation(), std::runtime_error);
}

TEST_F(CpuImplementations, EachChoiceHasItsOwnNameAndPlace) {
  for (const CpuChoice& choice : kCpuChoices) {
    CpuImplementation changed = kOfLibraries;
    EXPECT_TRUE(choice.set(changed, choice.values[0])) << choice.name;
    EXPECT_NE(changed, kOfLibraries) << choice.name;
    EXPECT_EQ(choice.value_in(changed), choice.values[0]) << choice.name;
    EXPECT_TRUE(choice.set(changed, choice.values[1])) << choice.name;
    EXPECT_EQ(changed, kOfLibraries) << choice.name;
    EXPECT_FALSE(choice.set(changed, "fastest")) << choice.name;
  }
  EXPECT_EQ(implementation_text(kOfLibraries),
            "attention library, products mkl, convolutions library, layout contiguous, convolutions_3x3 direct, "
            "attention_bfloat16 float32, attention_backward_bfloat16 float32, convolutions_bfloat16 library, "
            "attention_heads multiples_of_8, attention_causal library, small_products library, "
            "convolutions_3x3_bfloat16 direct, attention_exponential_bfloat16 long, convolutions_3x3_kernels whole");
}

TEST_F(CpuImplementations, TheLayoutIsThatOfMapsOnTheCpuAlone) {
  const CpuImplementationScope scope(kOfLibraries);
  EXPECT_EQ(map_memory_format(torch::kCPU, torch::kFloat32), torch::MemoryFormat::Contiguous);
  const CpuImplementationScope ours(CpuImplementation{});
  EXPECT_EQ(map_memory_format(torch::kCPU, torch::kFloat32), torch::MemoryFormat::ChannelsLast);
  EXPECT_EQ(map_memory_format(torch::kCUDA, torch::kFloat32), torch::MemoryFormat::Contiguous);
}

}  // namespace
}  // namespace sdtune::model
