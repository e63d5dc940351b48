#include "model/core/libtorch_version.h"

#include <gtest/gtest.h>
#include <torch/version.h>

namespace sdtune::model {
namespace {

// Another one is planted in tests/python/test_libtorch.py.
TEST(LibtorchVersion, IsTheOneThatItWasBuiltWith) {
  const std::string found = loaded_libtorch();
  EXPECT_EQ(found.substr(0, found.find('+')), TORCH_VERSION);
  EXPECT_NO_THROW(check_loaded_libtorch());
}

}  // namespace
}  // namespace sdtune::model
