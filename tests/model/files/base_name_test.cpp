#include "model/files/base_name.h"

#include <gtest/gtest.h>

#include <utility>

namespace sdtune {
namespace {

TEST(BaseName, TellsNoPathOfThisMachine) {
  const std::pair<const char*, const char*> cases[] = {
      {"org/name", "org/name"},
      {"/home/me/hub/models--org--name/snapshots/0123abcd", "org/name"},
      {"/home/me/bases/sd15", "sd15"},
      {"/home/me/bases/sd15/", "sd15"},
      {"sd15", "sd15"},
      {"/home/me/models--alone", "models--alone"},
  };
  for (const auto& [base, name] : cases) EXPECT_EQ(public_base_name(base), name) << base;
}

}  // namespace
}  // namespace sdtune
